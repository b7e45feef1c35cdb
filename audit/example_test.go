package audit_test

import (
	"context"
	"fmt"

	"holdfast/audit"
	"holdfast/eventlog/memory"
)

func ExampleVerify() {
	report, err := audit.Verify(context.Background(), memory.New(), nil)
	fmt.Println(report.Clean(), err)
	// Output: true <nil>
}
