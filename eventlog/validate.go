package eventlog

import (
	"fmt"
	"math"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Validate checks the appends of one call against the rules that hold on every
// engine. It returns [*Invalid], naming the first rule that is broken, or nil.
// Engines call it before anything else.
func Validate(appends []StreamAppend) error {
	if len(appends) == 0 {
		return invalid("the call has no stream append")
	}
	if len(appends) > MaxAppends {
		return invalid("the call has %d stream appends, at most %d are allowed", len(appends), MaxAppends)
	}
	for i := range appends {
		if err := validateAppend(&appends[i]); err != nil {
			return err
		}
		for j := range i {
			if appends[j].Stream == appends[i].Stream {
				return invalid("stream %q appears twice in one call", appends[i].Stream)
			}
		}
	}
	return nil
}

// ValidateStream checks the name of a stream. It returns [*Invalid] or nil.
func ValidateStream(stream string) error {
	switch {
	case stream == "":
		return invalid("the stream name is empty")
	case len(stream) > MaxStreamName:
		return invalid("the stream name has %d bytes, at most %d are allowed", len(stream), MaxStreamName)
	case stream[0] == '$':
		return invalid("stream name %q starts with '$', which is kept for the engines", stream)
	}
	if fault := faultyText(stream); fault != "" {
		return invalid("stream name %q %s", stream, fault)
	}
	return nil
}

func validateAppend(a *StreamAppend) error {
	if err := ValidateStream(a.Stream); err != nil {
		return err
	}
	if len(a.Events) == 0 {
		return invalid("the append to stream %q has no events", a.Stream)
	}
	if len(a.Events) > MaxAppendEvents {
		return invalid("the append to stream %q has %d events, at most %d are allowed", a.Stream, len(a.Events), MaxAppendEvents)
	}
	if a.At > math.MaxInt64-uint64(len(a.Events)) {
		return invalid("the append to stream %q is at revision %d, which is beyond the largest revision", a.Stream, a.At)
	}
	size := 0
	for i := range a.Events {
		event := &a.Events[i]
		if event.ID == uuid.Nil {
			return invalid("event %d for stream %q has no id", i, a.Stream)
		}
		if event.Type == "" {
			return invalid("event %d for stream %q has no type", i, a.Stream)
		}
		if len(event.Type) > MaxEventType {
			return invalid("the type of event %d for stream %q has %d bytes, at most %d are allowed", i, a.Stream, len(event.Type), MaxEventType)
		}
		if fault := faultyText(event.Type); fault != "" {
			return invalid("the type %q of event %d for stream %q %s", event.Type, i, a.Stream, fault)
		}
		size += len(event.Type) + len(event.Data) + len(event.Metadata)
	}
	if size > MaxAppendBytes {
		return invalid("the append to stream %q carries %d bytes, at most %d are allowed", a.Stream, size, MaxAppendBytes)
	}
	return nil
}

// faultyText says in a clause what is wrong with a name, or returns "". Names of
// printable ASCII, which nearly all are, are settled in one pass over the bytes.
func faultyText(s string) string {
	plain := true
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			plain = false
			break
		}
	}
	if plain {
		return ""
	}
	if !utf8.ValidString(s) {
		return "is not valid UTF-8"
	}
	for _, r := range s {
		if unicode.IsControl(r) {
			return "contains a control character"
		}
	}
	return ""
}

func invalid(format string, args ...any) *Invalid {
	return &Invalid{Reason: fmt.Sprintf(format, args...)}
}
