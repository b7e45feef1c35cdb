package eventlog_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/uuid"

	"holdfast/eventlog"
)

func TestValidate(t *testing.T) {
	event := func(change func(*eventlog.Event)) eventlog.Event {
		e := eventlog.Event{ID: uuid.New(), Type: "KeyClaimed", Data: []byte("{}"), Metadata: []byte("{}")}
		if change != nil {
			change(&e)
		}
		return e
	}
	one := func(stream string, at uint64, events ...eventlog.Event) []eventlog.StreamAppend {
		return []eventlog.StreamAppend{{Stream: stream, At: at, Events: events}}
	}
	named := func(stream string) []eventlog.StreamAppend { return one(stream, 0, event(nil)) }
	typed := func(name string) []eventlog.StreamAppend {
		return one("s", 0, event(func(e *eventlog.Event) { e.Type = name }))
	}
	sized := func(n int) []eventlog.StreamAppend {
		return one("s", 0,
			event(func(e *eventlog.Event) { e.Type, e.Data, e.Metadata = "t", bytes.Repeat([]byte{1}, n-1002), nil }),
			event(func(e *eventlog.Event) { e.Type, e.Data, e.Metadata = "t", nil, make([]byte, 1000) }))
	}
	streams := func(n int) (appends []eventlog.StreamAppend) {
		for i := range n {
			appends = append(appends, named(fmt.Sprintf("s%d", i))...)
		}
		return appends
	}
	events := func(n int) []eventlog.StreamAppend {
		var list []eventlog.Event
		for range n {
			list = append(list, event(nil))
		}
		return one("s", 0, list...)
	}

	tests := []struct {
		name    string
		appends []eventlog.StreamAppend
		want    string // part of the reason; "" when the append is valid
	}{
		{"no appends", nil, "no stream append"},
		{"as many appends as allowed", streams(eventlog.MaxAppends), ""},
		{"too many appends", streams(eventlog.MaxAppends + 1), "at most 16"},
		{"the same stream twice", append(named("s"), named("s")...), "appears twice"},
		{"streams that differ in case", append(named("s"), named("S")...), ""},

		{"empty name", named(""), "name is empty"},
		{"one byte", named("-"), ""},
		{"longest name", named(strings.Repeat("x", 256)), ""},
		{"longest name, counted in bytes", named(strings.Repeat("é", 128)), ""},
		{"name too long", named(strings.Repeat("x", 257)), "257 bytes"},
		{"name too long, counted in bytes", named(strings.Repeat("é", 129)), "258 bytes"},
		{"reserved name", named("$all"), "starts with '$'"},
		{"dollar inside", named("a$"), ""},
		{"invalid UTF-8", named("a\xff"), "not valid UTF-8"},
		{"newline", named("a\nb"), "control character"},
		{"NUL", named("a\x00"), "control character"},
		{"delete", named("a\x7f"), "control character"},
		{"C1 control", named("a\u0085"), "control character"},
		{"unicode and blanks", named(" 銀行 é "), ""},

		{"no events", one("s", 0), "no events"},
		{"as many events as allowed", events(eventlog.MaxAppendEvents), ""},
		{"too many events", events(eventlog.MaxAppendEvents + 1), "at most 256"},
		{"no id", one("s", 0, event(nil), event(func(e *eventlog.Event) { e.ID = uuid.Nil })), "event 1 for stream \"s\" has no id"},
		{"no type", typed(""), "no type"},
		{"longest type", typed(strings.Repeat("t", 128)), ""},
		{"type too long", typed(strings.Repeat("t", 129)), "129 bytes"},
		{"type of invalid UTF-8", typed("\xc3("), "not valid UTF-8"},
		{"type with a control character", typed("a\tb"), "control character"},
		{"as many bytes as allowed", sized(eventlog.MaxAppendBytes), ""},
		{"one byte too many", sized(eventlog.MaxAppendBytes + 1), "1048577 bytes"},
		{"no data and no metadata", one("s", 0, event(func(e *eventlog.Event) { e.Data, e.Metadata = nil, nil })), ""},

		{"largest revision", one("s", math.MaxInt64-1, event(nil)), ""},
		{"revision beyond int64", one("s", math.MaxInt64, event(nil)), "beyond the largest revision"},
		{"revision that wraps around", one("s", math.MaxUint64, event(nil)), "beyond the largest revision"},
		{"the second append is looked at too", append(named("s"), named("")...), "name is empty"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := eventlog.Validate(test.appends)
			if test.want == "" {
				if err != nil {
					t.Fatalf("Validate = %v, want it to be valid", err)
				}
				return
			}
			var bad *eventlog.Invalid
			if !errors.As(err, &bad) || !strings.Contains(bad.Reason, test.want) {
				t.Fatalf("Validate = %v, want an Invalid that says %q", err, test.want)
			}
		})
	}
}
