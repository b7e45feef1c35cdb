package submissions_test

import (
	"context"
	"testing"

	"holdfast/events"
	"holdfast/submissions"
)

// lie says that one withdrawal is every key's.
type lie struct{ id events.WithdrawalID }

func (l *lie) Final(context.Context, events.Tenant, events.RequestKey) (events.WithdrawalID, bool, error) {
	return l.id, true, nil
}

// What Finals says of another tenant's withdrawal, under a key of the same name, tells
// nobody of it (A14).
func TestA14FinalsTellNothingOfAnotherTenant(t *testing.T) {
	t.Parallel()
	lies := &lie{}
	f := newFixture(t, &submissions.Options{Finals: lies})
	lies.id = f.request(t, "order-1")
	taken(t)(f.Submit(t.Context(), "req-1", lies.id, f.bank.Send, nil))
	taken(t)(f.Submit(t.Context(), "req-1", lies.id, f.bank.Send, nil))
	other := f.For("other")
	s, err := other.Outcome(t.Context(), "req-1")
	if refused(t, err, submissions.CodeNotFound); s.ID != "" {
		t.Errorf("another tenant is told %+v", s)
	}
	_, err = other.Submit(t.Context(), "req-1", lies.id, f.bank.Send, nil)
	refused(t, err, submissions.CodeNotFound)
	if _, err := f.Outcome(t.Context(), "req-2"); err == nil {
		t.Error("a key that holds nothing is told of an outcome")
	}
	if n := f.bank.sends(); n != 1 {
		t.Errorf("it left %d times", n)
	}
}
