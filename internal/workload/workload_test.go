package workload_test

import (
	"reflect"
	"testing"

	"holdfast/audit"
	"holdfast/eventlog"
	"holdfast/eventlog/memory"
	"holdfast/internal/workload"
)

// What is made is a sound log, by the judgement of what checks logs.
func TestSound(t *testing.T) {
	log := memory.New()
	if err := workload.New(7).Fill(t.Context(), log, 5000); err != nil {
		t.Fatal(err)
	}
	report, err := audit.Verify(t.Context(), log, nil)
	if err != nil || !report.Clean() || report.Events < 5000 {
		t.Errorf("it is %+v, %v", report, err)
	}
}

func TestSeeds(t *testing.T) {
	calls := func(seed uint64) (all [][]eventlog.StreamAppend) {
		w := workload.New(seed)
		for range 300 {
			all = append(all, w.Next())
		}
		return all
	}
	if !reflect.DeepEqual(calls(1), calls(1)) {
		t.Error("one seed gave two workloads")
	}
	if reflect.DeepEqual(calls(1), calls(2)) {
		t.Error("two seeds gave one workload")
	}
}
