package events

import (
	"encoding/json"
	"errors"
	"strconv"
)

// form is what is stored as one JSON object whose fields have a fixed order. Its one
// description, fields, is gone through both to write it and to read it, which is several
// times faster than encoding/json. The struct's tags say the same once more, and tests
// hold the two to each other.
type form interface{ fields(*object) }

// formOf is a pointer to a T, which has the form.
type formOf[T any] interface {
	*T
	form
}

// object is JSON that is being written, or read from exactly the form in which it would be
// written.
type object struct {
	reading bool
	written []byte
	unread  string
	before  byte // what stands before the next field's name: '{' or ','
	err     error
}

// errOtherForm says that an object is not as it would be written here. It may be sound
// JSON all the same.
var errOtherForm = errors.New("not in the form that is written")

// readForm reads an object into a zero value, and reports whether data is in exactly the
// form in which it would be written. If it is not, what is in v is of no use.
func readForm(data []byte, v form) bool {
	o := object{reading: true, unread: string(data)}
	o.whole(v)
	return o.err == nil && o.unread == ""
}

// unmarshalForm does what unmarshalStrict does, at once for data in the form in which it
// would be written.
func unmarshalForm[T any, P formOf[T]](data []byte) (T, error) {
	var v, other T
	if readForm(data, P(&v)) {
		return v, nil
	}
	err := unmarshalStrict(data, &other)
	return other, err
}

// whole writes what json.Marshal would write, or reads that.
func (o *object) whole(v form) {
	o.before = '{'
	v.fields(o)
	o.before = ','
	switch {
	case !o.reading:
		o.written = append(o.written, '}')
	case o.unread == "" || o.unread[0] != '}':
		o.err = errOtherForm
	default:
		o.unread = o.unread[1:]
	}
}

// next goes on to a field, and reports whether its value is to be written or read now.
// An optional field is left out when it is empty.
func (o *object) next(name string, optional, empty bool) bool {
	if o.err != nil || optional && empty && !o.reading {
		return false
	}
	if !o.reading {
		o.written = append(append(append(o.written, o.before, '"'), name...), '"', ':')
		o.before = ','
		return true
	}
	rest, after := o.unread, len(name)+2
	if len(rest) < after+2 || rest[0] != o.before || rest[1] != '"' || rest[2:after] != name || rest[after:after+2] != `":` {
		if !optional {
			o.err = errOtherForm
		}
		return false
	}
	o.before, o.unread = ',', rest[after+2:]
	return true
}

func text[S ~string](o *object, name string, v *S)         { textField(o, name, v, false) }
func optionalText[S ~string](o *object, name string, v *S) { textField(o, name, v, true) }

func textField[S ~string](o *object, name string, v *S, optional bool) {
	if !o.next(name, optional, *v == "") {
		return
	}
	if o.reading {
		*v = S(o.readString())
	} else {
		o.written, o.err = appendString(o.written, string(*v))
	}
}

func number[N int | uint64](o *object, name string, v *N)         { numberField(o, name, v, false) }
func optionalNumber[N int | uint64](o *object, name string, v *N) { numberField(o, name, v, true) }

func numberField[N int | uint64](o *object, name string, v *N, optional bool) {
	if !o.next(name, optional, *v == 0) {
		return
	}
	if o.reading {
		*v = N(o.readNumber())
	} else if *v < 0 {
		o.written = strconv.AppendInt(o.written, int64(*v), 10)
	} else {
		o.written = strconv.AppendUint(o.written, uint64(*v), 10)
	}
}

func amount(o *object, name string, v *Amount)         { amountField(o, name, v, false) }
func optionalAmount(o *object, name string, v *Amount) { amountField(o, name, v, true) }

func amountField(o *object, name string, v *Amount, optional bool) {
	switch {
	case !o.next(name, optional, *v == Amount{}):
	case o.reading:
		o.err = v.UnmarshalText([]byte(o.readString())) // which takes no empty text
	default:
		o.written, o.err = v.AppendText(append(o.written, '"'))
		o.written = append(o.written, '"')
	}
}

func timestamp(o *object, name string, v *Timestamp)         { timestampField(o, name, v, false) }
func optionalTimestamp(o *object, name string, v *Timestamp) { timestampField(o, name, v, true) }

func timestampField(o *object, name string, v *Timestamp, optional bool) {
	switch {
	case !o.next(name, optional, v.IsZero()):
	case o.reading:
		o.err = v.UnmarshalText([]byte(o.readString())) // which takes no empty text
	default:
		o.written, o.err = v.AppendText(append(o.written, '"'))
		o.written = append(o.written, '"')
	}
}

// readString reads a JSON string.
func (o *object) readString() string {
	if o.unread == "" || o.unread[0] != '"' {
		o.err = errOtherForm
		return ""
	}
	plain := true
	for i := 1; i < len(o.unread); i++ {
		switch c := o.unread[i]; {
		case c == '"':
			literal := o.unread[:i+1]
			o.unread = o.unread[i+1:]
			if plain {
				return literal[1:i]
			}
			return o.unquote(literal)
		case c == '\\':
			plain = false
			i++
		case c < ' ' || c > '~':
			plain = false
		}
	}
	o.err = errOtherForm
	return ""
}

// unquote reads a JSON string with more in it than plain characters.
func (o *object) unquote(literal string) (s string) {
	o.err = json.Unmarshal([]byte(literal), &s)
	return s
}

// readNumber reads a whole number that is not negative and does not fill its type.
func (o *object) readNumber() (n uint64) {
	i := 0
	for ; i < len(o.unread) && o.unread[i] >= '0' && o.unread[i] <= '9'; i++ {
		n = 10*n + uint64(o.unread[i]-'0')
	}
	if i == 0 || i > 18 || i > 1 && o.unread[0] == '0' {
		o.err = errOtherForm
	}
	o.unread = o.unread[i:]
	return n
}

// appendString appends a JSON string, as json.Marshal writes it.
func appendString[S string | []byte](to []byte, s S) ([]byte, error) {
	start, done := len(to), 0
	to = append(to, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			to = append(append(to, s[done:i]...), '\\')
			done = i
		case c < ' ' || c > '~' || c == '<' || c == '>' || c == '&':
			quoted, err := json.Marshal(string(s))
			return append(to[:start], quoted...), err
		}
	}
	return append(append(to, s[done:]...), '"'), nil
}

// response is a field that is an object itself.
func response(o *object, name string, v *Response) {
	if o.next(name, false, false) {
		o.whole(v)
	}
}

// optionalResponse is left out when there is none.
func optionalResponse(o *object, name string, v **Response) {
	if !o.next(name, true, *v == nil) {
		return
	}
	if o.reading {
		*v = new(Response)
	}
	o.whole(*v)
}
