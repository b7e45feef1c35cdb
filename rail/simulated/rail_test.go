package simulated_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/rail"
	"holdfast/rail/simulated"
)

// open opens a fresh book, and returns where it is.
func open(t *testing.T, opts *simulated.Options) (*simulated.Rail, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "book.jsonl")
	r, err := simulated.Open(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	return r, path
}

func TestSend(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 30, 0, 123456789, time.FixedZone("CET", 3600))
	r, path := open(t, &simulated.Options{Now: func() time.Time { return at }})
	p := payment("w1")
	receipt, err := r.Send(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^sim-[0-9a-f]{16}$`).MatchString(receipt.Reference) {
		t.Errorf("reference = %q, want sim- and 16 hexadecimal digits", receipt.Reference)
	}
	if got, want := string(receipt.Response.Body), `{"reference":"`+receipt.Reference+`","status":"sent"}`; got != want {
		t.Errorf("response = %s, want %s", got, want)
	}
	if got := receipt.Response.MediaType; got != "application/json" {
		t.Errorf("media type = %q, want application/json", got)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"time":"2026-03-01T11:30:00.123456Z","reference":"` + receipt.Reference + `","withdrawal":"w1",` +
		`"account":"acc-1","amount":"10.25","currency":"EUR","destination":"DE02 <Zoë & Søn>","token":"token-w1","attempt":1}` + "\n"
	if string(got) != want {
		t.Errorf("the book is\n%swant\n%s", got, want)
	}
	if r.Name() != "simulated" {
		t.Errorf("Name() = %q, want simulated", r.Name())
	}
}

func TestSendRefusesWhatCannotBeBooked(t *testing.T) {
	for name, change := range map[string]func(*rail.Payment){
		"withdrawal is missing":    func(p *rail.Payment) { p.Withdrawal = "" },
		"amount is missing":        func(p *rail.Payment) { p.Amount = rail.Payment{}.Amount },
		"destination is not UTF-8": func(p *rail.Payment) { p.Destination = "\xff" },
		"attempts count from 1":    func(p *rail.Payment) { p.Attempt = 0 },
		"a line has at most":       func(p *rail.Payment) { p.Token = strings.Repeat("x", simulated.MaxLine) },
	} {
		t.Run(name, func(t *testing.T) {
			r, path := open(t, nil)
			p := payment("w1")
			change(&p)
			_, err := r.Send(t.Context(), p)
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("Send = %v, want an error that says %q", err, name)
			}
			if n := len(allEntries(t, path)); n != 0 {
				t.Errorf("%d entries booked, want none", n)
			}
		})
	}
}

// TestFaults runs every fault in a bubble of its own, under a deadline of 10 seconds and
// with Options.Late of 5.
func TestFaults(t *testing.T) {
	var none error
	tests := map[simulated.Fault]struct {
		left    int
		after   time.Duration
		err     error // what the error is; none is a good receipt
		outcome string
	}{
		simulated.FaultNone:          {1, 0, none, "returned"},
		simulated.FaultRefuse:        {0, 0, none, "refused"},
		simulated.FaultErrorBefore:   {0, 0, simulated.ErrFault, "returned"},
		simulated.FaultErrorAfter:    {1, 0, simulated.ErrFault, "returned"},
		simulated.FaultTimeoutBefore: {0, 10 * time.Second, context.DeadlineExceeded, "returned"},
		simulated.FaultTimeoutAfter:  {1, 10 * time.Second, context.DeadlineExceeded, "returned"},
		simulated.FaultLate:          {1, 15 * time.Second, none, "returned"},
		simulated.FaultDieBefore:     {0, 0, none, "died"},
		simulated.FaultDieAfter:      {1, 0, none, "died"},
		simulated.FaultPanicBefore:   {0, 0, none, "panicked"},
		simulated.FaultPanicAfter:    {1, 0, none, "panicked"},
		simulated.FaultNoReference:   {1, 0, none, "no reference"},
		"":                           {1, 0, none, "returned"},
	}
	for _, f := range simulated.Faults() {
		if _, ok := tests[f]; !ok {
			t.Errorf("fault %s has no test", f)
		}
	}
	for fault, want := range tests {
		t.Run("fault="+string(fault), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "book.jsonl")
			synctest.Test(t, func(t *testing.T) {
				r, err := simulated.Open(path, &simulated.Options{
					Fault: always(fault),
					Late:  5 * time.Second,
					Die:   runtime.Goexit, // the goroutine of the send is all that dies
				})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				start := time.Now()
				got := send(ctx, r, payment("w1"))
				if took := time.Since(start); took != want.after {
					t.Errorf("Send took %v, want %v", took, want.after)
				}
				if got.outcome != want.outcome || !errors.Is(got.err, want.err) && want.outcome != "refused" {
					t.Errorf("Send %s with %v, want %s with %v", got.outcome, got.err, want.outcome, want.err)
				}
				if counts, err := simulated.Count(path); err != nil || counts["w1"] != want.left {
					t.Errorf("%d payments left (%v), want %d", counts["w1"], err, want.left)
				}
			})
		})
	}
}

// ending is how a send ended.
type ending struct {
	outcome string
	receipt rail.Receipt
	err     error
}

// send sends from a goroutine of its own, which may panic or die.
func send(ctx context.Context, r *simulated.Rail, p rail.Payment) ending {
	done := make(chan ending, 1)
	go func() {
		e := ending{outcome: "died"}
		defer func() {
			if recover() != nil {
				e.outcome = "panicked"
			}
			done <- e
		}()
		receipt, err := r.Send(ctx, p)
		_, refused := rail.AsRefusal(err)
		e = ending{"returned", receipt, err}
		switch {
		case refused:
			e.outcome = "refused"
		case err == nil && receipt.Reference == "":
			e.outcome = "no reference"
		}
	}()
	return <-done
}

func TestTimeoutAfterLetsTheMoneyLeaveAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "book.jsonl")
	synctest.Test(t, func(t *testing.T) {
		r, err := simulated.Open(path, &simulated.Options{Fault: always(simulated.FaultTimeoutAfter)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan ending)
		go func() { done <- send(ctx, r, payment("w1")) }()
		synctest.Wait()
		if n := len(allEntries(t, path)); n != 1 {
			t.Errorf("%d payments left while Send waits, want 1", n)
		}
		cancel()
		if got := <-done; !errors.Is(got.err, context.Canceled) {
			t.Errorf("Send = %v, want the context's error", got.err)
		}
	})
}

func TestLateLeavesTheOutcomeUnknownUntilItLeft(t *testing.T) {
	path := filepath.Join(t.TempDir(), "book.jsonl")
	synctest.Test(t, func(t *testing.T) {
		r, err := simulated.Open(path, &simulated.Options{Fault: always(simulated.FaultLate), Late: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan ending)
		go func() { done <- send(ctx, r, payment("w1")) }()
		cancel()
		synctest.Wait()
		wantKnowledge(t, r, "w1", rail.Knowledge{
			Verdict: rail.VerdictUnknown,
			Detail:  "the withdrawal is not in the rail's book; a payment may still be on its way",
		})
		got := <-done
		if got.err != nil || got.receipt.Reference == "" {
			t.Errorf("Send = %v, %v, want a good receipt", got.receipt, got.err)
		}
		if k, err := r.LookUp(t.Context(), "w1"); err != nil || k.Verdict != rail.VerdictSent || k.Reference != got.receipt.Reference {
			t.Errorf("LookUp = %v, %v, want sent as %s", k, err, got.receipt.Reference)
		}
	})
}

func TestLatency(t *testing.T) {
	for _, tt := range []struct {
		name              string
		deadline, latency time.Duration
		took              time.Duration
		left              int
		err               error
	}{
		{"in time", 10 * time.Second, 9 * time.Second, 9 * time.Second, 1, nil},
		{"too slow", 10 * time.Second, 11 * time.Second, 10 * time.Second, 0, context.DeadlineExceeded},
		{"already over", 0, 0, 0, 0, context.DeadlineExceeded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "book.jsonl")
			synctest.Test(t, func(t *testing.T) {
				r, err := simulated.Open(path, &simulated.Options{Latency: tt.latency})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), tt.deadline)
				defer cancel()
				start := time.Now()
				_, err = r.Send(ctx, payment("w1"))
				if took := time.Since(start); !errors.Is(err, tt.err) || took != tt.took {
					t.Errorf("Send took %v, %v, want %v, %v", took, err, tt.took, tt.err)
				}
				if n := len(allEntries(t, path)); n != tt.left {
					t.Errorf("%d payments left, want %d", n, tt.left)
				}
			})
		})
	}
}

func TestRefusalIsBookedVerbatim(t *testing.T) {
	r, path := open(t, &simulated.Options{Fault: always(simulated.FaultRefuse)})
	_, err := r.Send(t.Context(), payment("w1"))
	refusal, ok := rail.AsRefusal(err)
	if !ok {
		t.Fatalf("Send = %v, want a refusal", err)
	}
	const reason = "the simulated rail was told to refuse"
	if want := `{"status":"refused","reason":"` + reason + `"}`; string(refusal.Response.Body) != want || refusal.Reason != reason {
		t.Errorf("refusal = %q, %s, want %q, %s", refusal.Reason, refusal.Response.Body, reason, want)
	}
	booked := allEntries(t, path)
	if len(booked) != 1 || !booked[0].Refused || booked[0].Reason != reason || booked[0].Reference != "" {
		t.Errorf("the book is %v, want the refusal", booked)
	}
	for e := range simulated.Payments(path) {
		t.Errorf("Payments has %v, want none", e)
	}
}

func TestNoReferenceHasNoneInItsResponse(t *testing.T) {
	r, _ := open(t, &simulated.Options{Fault: always(simulated.FaultNoReference)})
	receipt, err := r.Send(t.Context(), payment("w1"))
	if err != nil || receipt.Reference != "" || string(receipt.Response.Body) != `{"status":"sent"}` {
		t.Errorf("Send = %q, %s, %v, want no reference anywhere", receipt.Reference, receipt.Response.Body, err)
	}
	if k, err := r.LookUp(t.Context(), "w1"); err != nil || k.Verdict != rail.VerdictSent || k.Reference == "" {
		t.Errorf("LookUp = %v, %v, want sent, with a reference", k, err)
	}
}

func TestUnknownFaultSendsNothing(t *testing.T) {
	r, path := open(t, &simulated.Options{Fault: always("eror-after")})
	if _, err := r.Send(t.Context(), payment("w1")); err == nil || !strings.Contains(err.Error(), "error-after") {
		t.Errorf("Send = %v, want an error that lists the faults", err)
	}
	if n := len(allEntries(t, path)); n != 0 {
		t.Errorf("%d entries booked, want none", n)
	}
}

func TestParseFault(t *testing.T) {
	for _, f := range simulated.Faults() {
		if got, err := simulated.ParseFault(string(f)); got != f || err != nil {
			t.Errorf("ParseFault(%q) = %q, %v", f, got, err)
		}
	}
	for _, name := range []string{"", "None", "late ", "error"} {
		const names = "none, refuse, error-before, error-after, timeout-before, timeout-after, late, die-before, die-after, panic-before, panic-after, no-reference"
		if f, err := simulated.ParseFault(name); err == nil || !strings.HasSuffix(err.Error(), " is not one of "+names) {
			t.Errorf("ParseFault(%q) = %q, %v, want an error that lists the names", name, f, err)
		}
	}
}

func TestTokenIsNotHonouredByDefault(t *testing.T) {
	r, path := open(t, nil)
	for range 2 {
		if _, err := r.Send(t.Context(), payment("w1")); err != nil {
			t.Fatal(err)
		}
	}
	booked := allEntries(t, path)
	if len(booked) != 2 || booked[0].Reference == booked[1].Reference {
		t.Errorf("the book is %v, want two payments with references of their own", booked)
	}
}

func TestHonourToken(t *testing.T) {
	fault := simulated.FaultRefuse
	r, path := open(t, &simulated.Options{
		HonourToken: true,
		Fault:       func(rail.Payment) simulated.Fault { return fault },
	})
	p := payment("w1")
	if _, err := r.Send(t.Context(), p); err == nil {
		t.Fatal("Send = nil, want a refusal")
	}
	fault, p.Attempt = simulated.FaultNone, 2
	first, err := r.Send(t.Context(), p)
	if err != nil {
		t.Fatalf("Send after a refusal = %v, want it to pay", err)
	}
	for _, fault = range []simulated.Fault{simulated.FaultNone, simulated.FaultRefuse} {
		p.Attempt++
		again, err := r.Send(t.Context(), p)
		if err != nil || again.Reference != first.Reference || string(again.Response.Body) != string(first.Response.Body) {
			t.Errorf("Send again under %s = %v, %v, want %v", fault, again, err, first)
		}
	}
	fault = simulated.FaultNone
	other := payment("w2")
	other.Token = p.Token
	if _, err := r.Send(t.Context(), other); err == nil || !strings.Contains(err.Error(), "has paid another withdrawal") {
		t.Errorf("Send of another payment with the token = %v, want an error", err)
	}
	if n := len(allEntries(t, path)); n != 2 {
		t.Errorf("the book has %d entries, want a refusal and a payment", n)
	}
	p.Token = ""
	for range 2 {
		if _, err := r.Send(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(allEntries(t, path)); n != 4 {
		t.Errorf("the book has %d entries after two sends without a token, want 4", n)
	}
}

func TestResponsesAreJSON(t *testing.T) {
	r, _ := open(t, &simulated.Options{NewReference: func() string { return `"<&>` }})
	receipt, err := r.Send(t.Context(), payment("w1"))
	if err != nil || receipt.Reference != `"<&>` || !json.Valid(receipt.Response.Body) {
		t.Errorf("Send = %q, %s, %v", receipt.Reference, receipt.Response.Body, err)
	}
}
