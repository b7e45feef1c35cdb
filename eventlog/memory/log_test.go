package memory_test

import (
	"testing"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"holdfast/eventlog"
	"holdfast/eventlog/logtest"
	"holdfast/eventlog/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	logtest.Run(t, logtest.Harness{
		Open:            func(*testing.T) eventlog.Log { return memory.New() },
		CommitsTogether: true,
		Damage: func(_ *testing.T, log eventlog.Log, stream string, revision uint64) {
			log.(*memory.Log).Remove(stream, revision)
		},
	})
}

func TestConformanceOneByOne(t *testing.T) {
	logtest.Run(t, logtest.Harness{
		Open: func(*testing.T) eventlog.Log { return logtest.OneByOne(memory.New()) },
	})
}

// A caller that goes on using its buffers must not change what is in the log.
func TestAppendCopies(t *testing.T) {
	log := memory.New()
	data := []byte("before")
	_, err := log.Append(t.Context(), eventlog.StreamAppend{Stream: "s",
		Events: []eventlog.Event{{ID: uuid.New(), Type: "T", Data: data, Metadata: data}}})
	if err != nil {
		t.Fatal(err)
	}
	copy(data, "after!")
	for recorded, err := range log.ReadStream(t.Context(), "s", 0) {
		if err != nil || string(recorded.Data) != "before" || string(recorded.Metadata) != "before" {
			t.Errorf("read %q and %q, %v, want what was appended", recorded.Data, recorded.Metadata, err)
		}
	}
}
