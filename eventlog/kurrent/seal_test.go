package kurrent

import (
	"bytes"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"holdfast/eventlog"
)

// The ids that the server has must mean the same for ever: this one was written down when
// the first event was stored.
func TestSealIsForEver(t *testing.T) {
	e := eventlog.Event{ID: uuid.MustParse("0f5ad4e2-31c6-4e0f-9d5f-6a0b7d1f9e10"), Type: "KeyClaimed", Data: []byte(`{"key":"req-1"}`), Metadata: []byte(`{"schema":1}`)}
	const want = "534b0c49-b43d-cbf1-d6e7-6c3ff85096f6"
	if got := newSealer().sealed(&e).String(); got != want {
		t.Errorf("the server's id is %s, it was %s", got, want)
	}
}

func TestSeal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		one := eventlog.Event{ID: id, Type: rapid.String().Draw(t, "type"), Data: rapid.SliceOf(rapid.Byte()).Draw(t, "data"), Metadata: rapid.SliceOf(rapid.Byte()).Draw(t, "metadata")}
		if back := newSealer().seal(newSealer().sealed(&one), one.Type, one.Data, one.Metadata); back != id {
			t.Fatalf("%s became %s", id, back)
		}
		other := one
		switch rapid.IntRange(0, 3).Draw(t, "change") {
		case 0:
			other.Type += "x"
		case 1:
			other.Data = append(bytes.Clone(one.Data), 0)
		case 2:
			other.Metadata = append(bytes.Clone(one.Metadata), 0)
		case 3: // a byte moves from one field to the next
			if len(one.Data) == 0 {
				t.Skip("no byte to move")
			}
			last := len(one.Data) - 1
			other.Data, other.Metadata = one.Data[:last], append([]byte{one.Data[last]}, one.Metadata...)
		}
		if newSealer().sealed(&one) == newSealer().sealed(&other) {
			t.Fatal("the server cannot tell them apart")
		}
	})
	none, empty := eventlog.Event{Data: nil}, eventlog.Event{Data: []byte{}, Metadata: []byte{}}
	if newSealer().sealed(&none) != newSealer().sealed(&empty) {
		t.Error("nil and empty are the same to the port, and not to the server")
	}
}
