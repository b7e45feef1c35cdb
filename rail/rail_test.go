package rail_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"holdfast/rail"
)

func TestAsRefusal(t *testing.T) {
	refusal := &rail.Refusal{Reason: "account closed"}
	var unset *rail.Refusal
	tests := []struct {
		name string
		err  error
		want *rail.Refusal // nil: not a refusal
	}{
		{"a refusal is one", refusal, refusal},
		{"wrapped", fmt.Errorf("bank: %w", refusal), refusal},
		{"wrapped twice", fmt.Errorf("rail: %w", fmt.Errorf("bank: %w", refusal)), refusal},
		{"nil is none", nil, nil},
		{"an unset *Refusal is none", unset, nil},
		{"a wrapped unset *Refusal is none", fmt.Errorf("bank: %w", unset), nil},
		{"another error is none", errors.New("connection reset"), nil},
		{"the end of a context is none", context.DeadlineExceeded, nil},
		{"formatted by %v is none", fmt.Errorf("bank: %v", refusal), nil},
		{"joined with another is none", errors.Join(refusal, errors.New("connection reset")), nil},
		{"joined alone is none", errors.Join(refusal), nil},
		{"two of %w is none", fmt.Errorf("%w, then %w", refusal, context.Canceled), nil},
		{"wrapped around a join is none", fmt.Errorf("bank: %w", errors.Join(context.Canceled, refusal)), nil},
		{"inside a join's wrapping is none", errors.Join(fmt.Errorf("bank: %w", refusal)), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := rail.AsRefusal(tt.err)
			if got != tt.want || ok != (tt.want != nil) {
				t.Errorf("AsRefusal(%v) = %v, %v, want %v", tt.err, got, ok, tt.want)
			}
		})
	}
}

func TestRefusalError(t *testing.T) {
	for _, tt := range []struct {
		refusal *rail.Refusal
		want    string
	}{
		{&rail.Refusal{Reason: "account closed"}, "rail refused: account closed"},
		{nil, "rail: a nil refusal, which asserts nothing"},
	} {
		if got := tt.refusal.Error(); got != tt.want {
			t.Errorf("Error() = %q, want %q", got, tt.want)
		}
	}
}
