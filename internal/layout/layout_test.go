package layout

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// allowed says which of our packages each may import, directly or not; a package that is
// not named here may import none. What ends in /... stands for everything below.
var allowed = map[string][]string{
	"holdfast/events":               {},
	"holdfast/aggregate":            {"holdfast/events"},
	"holdfast/eventlog":             {},
	"holdfast/eventlog/memory":      {"holdfast/eventlog"},
	"holdfast/eventlog/sqlite":      {"holdfast/eventlog"},
	"holdfast/eventlog/logtest":     {"holdfast/eventlog"},
	"holdfast/eventlog/kurrent":     {"holdfast/eventlog"},
	"holdfast/eventlog/engines":     {"holdfast/eventlog", "holdfast/eventlog/kurrent", "holdfast/eventlog/memory", "holdfast/eventlog/sqlite"},
	"holdfast/rail":                 {"holdfast/events"},
	"holdfast/rail/simulated":       {"holdfast/events", "holdfast/rail"},
	"holdfast/submissions":          {"holdfast/events", "holdfast/aggregate", "holdfast/eventlog", "holdfast/rail"},
	"holdfast/projections":          {"holdfast/events", "holdfast/aggregate", "holdfast/eventlog"},
	"holdfast/audit":                {"holdfast/events", "holdfast/aggregate", "holdfast/eventlog"},
	"holdfast/transfer":             {"holdfast/events", "holdfast/aggregate", "holdfast/eventlog", "holdfast/rail", "holdfast/submissions", "holdfast/audit"},
	"holdfast/internal/explore":     {"holdfast/events", "holdfast/aggregate", "holdfast/eventlog", "holdfast/eventlog/memory", "holdfast/rail", "holdfast/submissions", "holdfast/audit"},
	"holdfast/internal/model":       {},
	"holdfast/internal/layout":      {},
	"holdfast/internal/kurrentnode": {},
	"holdfast/internal/integration": {},
	"holdfast/internal/shell":       {},
	"holdfast/internal/workload":    {"holdfast/events", "holdfast/eventlog"},
	"holdfast/cmd/holdfast":         {"..."},
}

// pure are the packages that import the standard library alone, beside each other.
var pure = []string{"holdfast/events", "holdfast/aggregate"}

func TestImports(t *testing.T) {
	for _, pkg := range list(t, "-f", "{{.ImportPath}}", "holdfast/...") {
		may, known := allowed[pkg]
		if !known {
			t.Errorf("%s is not in the map: say what it may import", pkg)
			continue
		}
		if slices.Contains(may, "...") {
			continue
		}
		for _, dep := range list(t, "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", pkg) {
			switch ours := strings.HasPrefix(dep, "holdfast/"); {
			case dep == pkg:
			case ours && !slices.Contains(may, dep):
				t.Errorf("%s imports %s, which it may not", pkg, dep)
			case !ours && slices.Contains(pure, pkg):
				t.Errorf("%s imports %s; it is to import the standard library alone", pkg, dep)
			}
		}
	}
}

// list runs go list and returns its lines.
func list(t *testing.T, args ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...)
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %s: %v", strings.Join(args, " "), err)
	}
	return strings.Fields(string(out))
}
