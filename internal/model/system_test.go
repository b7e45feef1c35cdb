package model_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"holdfast/eventlog"
	"holdfast/eventlog/logtest"
	"holdfast/eventlog/memory"
	"holdfast/eventlog/sqlite"
	"holdfast/events"
	"holdfast/internal/model"
	"holdfast/rail"
	"holdfast/submissions"
)

const margin = time.Minute

// processes is how many ledgers a system has: each is a process of its own, as far as it
// can know.
const processes = 2

// system is a log with several ledgers on it, which the same commands are given to as
// the model.
type system struct {
	name    string
	log     eventlog.Log
	faults  *logtest.FaultyLog // nil where appends do not fail
	ledgers []*submissions.Ledger
	sends   map[attempt]*send
	now     time.Duration
	ids     uint64
}

// attempt names one call of a rail, and send is one under way.
type attempt struct {
	withdrawal string
	number     int
}

type send struct {
	payment chan rail.Payment
	answer  chan func(context.Context) (rail.Receipt, error)
	told    chan model.Answer
	cancel  context.CancelFunc
}

// newSystem returns a system whose clock and event ids are the same in every run.
func newSystem(t fatal, name string, log eventlog.Log) *system {
	s := &system{name: name, log: log, sends: map[attempt]*send{}}
	for range processes {
		l, err := submissions.New(log, &submissions.Options{
			ClockMargin: margin,
			Clock:       func() time.Time { return epoch().Add(s.now) },
			NewID: func() (id uuid.UUID) {
				s.ids++
				id[0] = 1
				binary.BigEndian.PutUint64(id[8:], s.ids)
				return id
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		s.ledgers = append(s.ledgers, l)
	}
	return s
}

// onMemory, apart and onDisk are the kinds of log that there are: one that commits
// several streams together, one that commits them one by one and loses answers, and
// SQLite.
func onMemory(t fatal) *system { return newSystem(t, "memory", memory.New()) }

func apart(t fatal) *system {
	faults := logtest.Faulty(memory.New())
	s := newSystem(t, "memory, one by one", logtest.OneByOne(faults))
	s.faults = faults
	return s
}

func onDisk(t fatal, path string) *system {
	log, err := sqlite.Open(context.Background(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return newSystem(t, "SQLite", log)
}

// do gives a command to one of the system's processes.
func (s *system) do(ctx context.Context, process int, c model.Command, how string, missing without) model.Answer {
	s.now = c.Now
	l := s.ledgers[process].For(events.Tenant(c.Tenant))
	switch c.Verb {
	case model.Submit:
		return s.submit(ctx, l, c, missing)
	case model.Report:
		return s.report(c, how)
	}
	a, _ := perform(ctx, l, c, missing, nil)
	return a
}

// submit starts a submission, and returns when the rail is called, or when it is
// answered without that.
func (s *system) submit(ctx context.Context, l ledger, c model.Command, missing without) model.Answer {
	ctx, cancel := context.WithCancel(ctx)
	under := &send{make(chan rail.Payment), make(chan func(context.Context) (rail.Receipt, error)), make(chan model.Answer, 1), cancel}
	go func() {
		a, _ := perform(ctx, l, c, missing, func(ctx context.Context, p rail.Payment) (rail.Receipt, error) {
			under.payment <- p
			return (<-under.answer)(ctx)
		})
		under.told <- a
	}()
	select {
	case p := <-under.payment:
		if p.Token != c.Withdrawal || string(p.Withdrawal) != c.Withdrawal {
			return model.Answer{Code: fmt.Sprintf("the rail was asked for %+v", p)}
		}
		s.sends[attempt{c.Withdrawal, p.Attempt}] = under
		return model.Answer{Attempt: p.Attempt}
	case a := <-under.told:
		cancel()
		return a
	}
}

// report lets the rail answer, and returns what its caller is told.
func (s *system) report(c model.Command, how string) model.Answer {
	at := attempt{c.Withdrawal, c.Attempt}
	under := s.sends[at]
	delete(s.sends, at)
	defer under.cancel()
	_, answer := answering(how, c.Reference, c.MediaType, c.Body)
	if how == "cancelled" {
		under.cancel()
	}
	under.answer <- answer
	return <-under.told
}

// close lets every rail go, and closes the log.
func (s *system) close() {
	for at := range s.sends {
		s.report(model.Command{Withdrawal: at.withdrawal, Attempt: at.number}, "error")
	}
	s.log.Close()
}

// stored is every byte of the log, in order.
func (s *system) stored() string {
	var b strings.Builder
	for r, err := range s.log.ReadAll(context.Background(), eventlog.Start) {
		fmt.Fprintf(&b, "%s %d %s %s %s %s %v\n", r.Stream, r.Revision, r.ID, r.Type, r.Data, r.Metadata, err)
	}
	return b.String()
}

// fatal is how a system that cannot be set up ends its test.
type fatal interface{ Fatal(...any) }
