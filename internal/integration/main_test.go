//go:build !containers

package integration

import (
	"testing"

	"go.uber.org/goleak"
)

// The clients of container engines leave goroutines behind, so they are not looked for
// there.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
