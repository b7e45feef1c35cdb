package kurrent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// What gRPC says, where the client hands it on as it came. What the client makes of
// errors itself is tested against a server: its errors cannot be made outside of it.
func TestStatusesAreTold(t *testing.T) {
	want := map[codes.Code]class{
		codes.Unauthenticated: refused, codes.PermissionDenied: refused, codes.Unimplemented: refused, codes.InvalidArgument: refused,
	}
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		err := fmt.Errorf("wrapped: %w", status.Error(code, "said so"))
		if got := classOf(err); got != want[code] {
			t.Errorf("%s is of class %d, want %d", code, got, want[code])
		}
		if got := spent(err); got != (code == codes.Unavailable) {
			t.Errorf("%s: the client is replaced: %v", code, got)
		}
	}
	for _, err := range []error{io.EOF, context.Canceled, errors.New("x"), &hung{errTimeout}, &hung{status.Error(codes.InvalidArgument, "x")}, &panicked{1}} {
		if got := classOf(err); got != unknown {
			t.Errorf("%v is of class %d, want unknown", err, got)
		}
	}
}

func TestRefusalsSayWhatToDo(t *testing.T) {
	for _, code := range []codes.Code{codes.Unauthenticated, codes.PermissionDenied, codes.Unimplemented, codes.InvalidArgument} {
		cause := status.Error(code, "said so")
		r := refusal("the append", cause)
		if r.Reason == "" || r.Try == "" || !errors.Is(r, cause) {
			t.Errorf("%s: %+v", code, r)
		}
	}
}
