package events

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// forms are what is stored, each with a comparison of the fast way and the library's.
func forms() map[string]func(data []byte) error {
	return map[string]func([]byte) error{
		"WithdrawalRequested": agree[WithdrawalRequested],
		"KeyReserved":         agree[KeyReserved],
		"KeyClaimed":          agree[KeyClaimed],
		"SendAttempted":       agree[SendAttempted],
		"SendRefused":         agree[SendRefused],
		"SendUnconfirmed":     agree[SendUnconfirmed],
		"OutcomeResolved":     agree[OutcomeResolved],
		"Released":            agree[Released],
		"LateOutcomeReported": agree[LateOutcomeReported],
		"CopyBegun":           agree[CopyBegun],
		"CopyAdvanced":        agree[CopyAdvanced],
		"CopyCompleted":       agree[CopyCompleted],
		"LedgerMoved":         agree[LedgerMoved],
		"LedgerKept":          agree[LedgerKept],
		"metadata":            agree[Metadata],
		"response":            agree[Response],
	}
}

// agree says in which way the fast reading of data, or the writing of what was read,
// differs from encoding/json.
func agree[T any, P formOf[T]](data []byte) error {
	var want T
	wantErr := unmarshalStrict(data, &want)
	got, err := unmarshalForm[T, P](data)
	if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
		return fmt.Errorf("%T: %q is read with error %v, and by the library with %v", want, data, err, wantErr)
	}
	if err != nil {
		return nil
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("%T: %q is read as %+v, and by the library as %+v", want, data, got, want)
	}
	return agreeWriting(P(&got))
}

func agreeWriting(v form) error {
	want, wantErr := json.Marshal(v)
	got, err := writeForm(v)
	if (err == nil) != (wantErr == nil) || err == nil && string(got) != string(want) {
		return fmt.Errorf("%T: %+v is written as %s (%v), and by the library as %s (%v)", v, v, got, err, want, wantErr)
	}
	return nil
}

func writeForm(v form) ([]byte, error) {
	var o object
	o.whole(v)
	return o.written, o.err
}

// Every event type has a form that is held to its tags.
func TestFormsAreAll(t *testing.T) {
	for name := range NewCodec().byType {
		if forms()[name] == nil {
			t.Errorf("the form of %s is not compared with its tags", name)
		}
	}
}

// Whatever the fields hold, the bytes are the library's.
func TestFormsAreWrittenAsTheLibraryWould(t *testing.T) {
	amount, err := ParseAmount("10.25")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		s := func() string {
			return string(rapid.OneOf(rapid.SliceOfN(rapid.Byte(), 0, 8), rapid.Map(rapid.StringN(0, 8, 16), func(s string) []byte { return []byte(s) }),
				rapid.SliceOfN(rapid.SampledFrom([]byte(`ab"\<>&`)), 0, 8)).Draw(t, "text"))
		}
		n := func() int { return rapid.OneOf(rapid.Int(), rapid.IntRange(-1, 2)).Draw(t, "number") }
		at := At(time.UnixMicro(rapid.Int64Range(0, 4e15).Draw(t, "time")))
		r := Response{s(), []byte(s())}
		optional := rapid.SampledFrom([]*Response{nil, &r}).Draw(t, "response")
		for _, v := range []form{
			&WithdrawalRequested{Tenant(s()), WithdrawalID(s()), s(), s(), amount, s(), s()},
			&KeyReserved{Tenant(s()), RequestKey(s()), WithdrawalID(s()), Fingerprint(s()), rapid.Uint64().Draw(t, "at")},
			&KeyClaimed{RequestKey(s()), Fingerprint(s())},
			&SendAttempted{n(), at, s(), s()},
			&SendRefused{n(), s(), optional},
			&SendUnconfirmed{n(), s()},
			&OutcomeResolved{RequestKey(s()), Result(s()), s(), r, Source(s()), n(), s(), s(),
				rapid.SampledFrom([]Amount{{}, amount}).Draw(t, "fee"), rapid.SampledFrom([]Timestamp{{}, at}).Draw(t, "rail time")},
			&Released{RequestKey(s()), s(), s()},
			&LateOutcomeReported{RequestKey(s()), n(), Result(s()), s(), s(), optional,
				rapid.SampledFrom([]Amount{{}, amount}).Draw(t, "late fee"), rapid.SampledFrom([]Timestamp{{}, at}).Draw(t, "late rail time")},
			&CopyBegun{s(), s(), s()},
			&CopyAdvanced{s(), rapid.Uint64().Draw(t, "position"), rapid.Uint64().Draw(t, "events")},
			&CopyCompleted{s(), rapid.Uint64().Draw(t, "events")},
			&LedgerMoved{s(), s()},
			&LedgerKept{s()},
			&Metadata{n(), at, s(), s(), s(), s(), s(), s()},
			&r,
		} {
			want, wantErr := json.Marshal(v)
			got, err := writeForm(v)
			if err != nil || wantErr != nil || string(got) != string(want) {
				t.Fatalf("%T %+v: got %s, %v; want %s, %v", v, v, got, err, want, wantErr)
			}
			name := reflect.TypeOf(v).Elem().Name()
			compare := forms()[map[string]string{"Metadata": "metadata", "Response": "response"}[name]]
			if compare == nil {
				compare = forms()[name]
			}
			if err := compare(got); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// What is written is read without the library's help, but for a response in base64.
func TestFormsAreReadAtOnce(t *testing.T) {
	for _, s := range writeStream(t, NewCodec()) {
		if !readForm(s.Metadata, &Metadata{}) {
			t.Errorf("metadata is not in its form: %s", s.Metadata)
		}
		fresh := map[string]form{
			"WithdrawalRequested": &WithdrawalRequested{}, "KeyReserved": &KeyReserved{}, "KeyClaimed": &KeyClaimed{},
			"SendAttempted": &SendAttempted{}, "SendRefused": &SendRefused{}, "SendUnconfirmed": &SendUnconfirmed{},
			"OutcomeResolved": &OutcomeResolved{}, "Released": &Released{}, "LateOutcomeReported": &LateOutcomeReported{},
			"CopyBegun": &CopyBegun{}, "CopyAdvanced": &CopyAdvanced{}, "CopyCompleted": &CopyCompleted{}, "LedgerMoved": &LedgerMoved{}, "LedgerKept": &LedgerKept{},
		}[s.Type]
		if inBase64 := bytes.Contains(s.Data, []byte(`"base64":`)); readForm(s.Data, fresh) == inBase64 {
			t.Errorf("%s: in base64 %t, and read at once %t: %s", s.Type, inBase64, !inBase64, s.Data)
		}
	}
}

// What may not be written is refused as the library would.
func TestFormsRefuseWhatHasNoText(t *testing.T) {
	for _, v := range []form{&WithdrawalRequested{}, &SendAttempted{}, &Metadata{}, &Metadata{RecordedAt: At(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))}} {
		if _, err := json.Marshal(v); err == nil {
			t.Errorf("%+v: the library writes it", v)
		}
		if got, err := writeForm(v); err == nil {
			t.Errorf("%+v was written as %s", v, got)
		}
	}
}

// Data that is nearly in the form is read, or refused, exactly as the library does.
func FuzzForm(f *testing.F) {
	for _, s := range writeStream(f, NewCodec()) {
		f.Add(s.Type, s.Data)
		f.Add("metadata", s.Metadata)
	}
	for _, data := range []string{
		``, `{}`, `{`, `null`, `{"key":"k","reason":"r","evidence":"e"} `, ` {"key":"k","reason":"r","evidence":"e"}`,
		`{"key":"k","reason":"r","evidence":"e"}}`, `{"key":"k","reason":"r"}`, `{"reason":"r","key":"k","evidence":"e"}`,
		`{"Key":"k","reason":"r","evidence":"e"}`, `{"key":"k","key":"l","reason":"r","evidence":"e"}`, `{"key":"\u006b\n","reason":"\ud800","evidence":"` + "\xff\x01" + `"}`,
		`{"key":"k","reason":"\x","evidence":"e"}`, `{"key":"k\","reason":"r","evidence":"e"}`, `{"key":null,"reason":"r","evidence":"e"}`,
		`{"key":"k","reason":"r","evidence":"e","more":1}`, `{"key":"k,"reason":"r","evidence":"e"}`, `{"key":1,"reason":"r","evidence":"e"}`,
		`{"key":"k","reason":"r","evidence":"e"`, `{"key":"k","reason":"r","evidence":"`, `{"key":"k","reason":"r","evidence":"e\`,
	} {
		f.Add("Released", []byte(data))
	}
	for _, n := range []string{`-1`, `01`, `1.0`, `1e0`, `"1"`, `null`, ``, `0`, fmt.Sprint(uint64(math.MaxUint64)), `18446744073709551616`, `9223372036854775808`} {
		f.Add("SendUnconfirmed", []byte(`{"attempt":`+n+`,"cause":"c"}`))
		f.Add("KeyReserved", []byte(`{"tenant":"","key":"","withdrawal":"","fingerprint":"","at":`+n+`}`))
	}
	for _, r := range []string{`null`, `{}`, `{"media_type":""}`, `{"media_type":"","text":"","base64":""}`, `{"media_type":"a","text":null}`,
		`{"media_type":"a","base64":""}`, `{"media_type":"a","base64":"!"}`, `{"media_type":"a","text":"b","c":1}`, `{"media_type":"a","text":"b"`} {
		f.Add("response", []byte(r))
		f.Add("SendRefused", []byte(`{"attempt":1,"reason":"r","response":`+r+`}`))
		f.Add("OutcomeResolved", []byte(`{"key":"k","result":"sent","response":`+r+`,"source":"rail"}`))
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		if compare := forms()[name]; compare != nil {
			if err := compare(data); err != nil {
				t.Error(err)
			}
		}
	})
}
