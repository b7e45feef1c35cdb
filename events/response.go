package events

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"unicode/utf8"
)

// Response is what a rail, or the composer of an answer, said: bytes that are kept and
// replayed verbatim, and their media type.
type Response struct {
	MediaType string
	Body      []byte
}

// IsZero reports whether there is no response at all.
func (r Response) IsZero() bool { return r.MediaType == "" && len(r.Body) == 0 }

// storedResponse is a Response in an event's data: as text where it is text, so that a
// person can read it in any tool, and in base64 where it is not.
type storedResponse struct {
	MediaType string  `json:"media_type"`
	Text      *string `json:"text,omitempty"`
	Base64    []byte  `json:"base64,omitempty"`
}

// MarshalJSON writes the body as text when it is valid UTF-8, and in base64 otherwise.
// Either way UnmarshalJSON gives back the same bytes.
func (r Response) MarshalJSON() ([]byte, error) {
	stored := storedResponse{MediaType: r.MediaType}
	if utf8.Valid(r.Body) {
		text := string(r.Body)
		stored.Text = &text
	} else {
		stored.Base64 = r.Body
	}
	return json.Marshal(stored)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *Response) UnmarshalJSON(data []byte) error {
	var stored storedResponse
	if err := unmarshalStrict(data, &stored); err != nil {
		return err
	}
	if (stored.Text != nil) == (stored.Base64 != nil) {
		return errors.New("a response has either text or base64")
	}
	*r = Response{MediaType: stored.MediaType, Body: stored.Base64}
	if stored.Text != nil {
		r.Body = []byte(*stored.Text)
	}
	return nil
}

// fields has the body as text when it is valid UTF-8, and in base64 otherwise.
func (r *Response) fields(o *object) {
	text(o, "media_type", &r.MediaType)
	switch {
	case o.reading:
		if o.next("text", false, false) {
			r.Body = []byte(o.readString())
		}
	case utf8.Valid(r.Body):
		o.next("text", false, false)
		o.written, o.err = appendString(o.written, r.Body)
	default:
		o.next("base64", false, false)
		o.written = append(base64.StdEncoding.AppendEncode(append(o.written, '"'), r.Body), '"')
	}
}
