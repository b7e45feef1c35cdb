package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

// story returns the steps of the demo, in order.
func story() []step {
	paid := &paidOnce{}
	return []step{
		{"A withdrawal is requested",
			"We mint its id; nothing is sent yet. Asking again under the same account and reference gives the same withdrawal.", paid.requested},
		{"It is submitted under a request key",
			"The claim is on disk before the rail hears of the payment.", paid.submitted},
		{"The client lost the answer, and retries",
			"It is told the same, byte for byte, and the rail is not called.", paid.retried},
		{"The key is reused for another withdrawal",
			"That is a bug in the client, and it is told loudly which fields differ, and no values.", paid.keyReused},
		{"A second client comes with a key of its own",
			"It did nothing wrong, and knows nothing of the first. It is told whose withdrawal this is.", paid.secondClient},
		{"The rail times out, after the money left",
			"Nobody knows what happened, so nothing moves until a person has looked.", timedOutAfter},
		{"The rail times out, before the money left",
			"The same from outside, and the other way round in the rail's book. A release is refused while the attempt may be running.", timedOutBefore},
		{"The rail says a clean no",
			"Only then is it known that nothing left. The key keeps its claim until somebody releases it.", refused},
		{"The process is killed between the send and the record",
			"A real process, killed by SIGKILL. The claim outlives it, and a person resolves it from the rail's book.", killed},
		{"Eight processes race for one withdrawal",
			"Each has a key of its own. One wins; the others are told which.", raced},
		{"The log is verified, and nothing is left in flight",
			"Every event's bytes, place, predecessor and order are checked.", verified},
		{"What the rail's own book says",
			"The rail pays whatever it is asked to pay, and keeps its own book. Each withdrawal left once.", countedOnce},
	}
}

// paidOnce is the first withdrawal's story.
type paidOnce struct {
	id    string
	first ran
}

func (p *paidOnce) requested(s *stage) {
	p.id = s.request("order-1", "10.25")
	again := s.run("request", "--account", "alice", "--reference", "order-1"+s.suffix, "--amount", "10.250", "--currency", "EUR",
		"--destination", "DE89370400440532013000")
	s.check("10.250 is the amount 10.25, and the id is the same", again.exit == 0 && again.fact("Withdrawal") == p.id, again.String())
}

func (p *paidOnce) submitted(s *stage) {
	p.first = s.run("submit", "--key", s.key("req-1"), "--withdrawal", p.id)
	s.check("it was sent, under the rail's reference", p.first.exit == 0 && p.first.fact("Result") == "sent" && p.first.fact("Rail reference") != "", p.first.String())
	s.left(p.id, 1)
}

func (p *paidOnce) retried(s *stage) {
	again := s.run("submit", "--key", s.key("req-1"), "--withdrawal", p.id)
	s.check("the answer is the first one, byte for byte", again.exit == 0 && again.stdout == p.first.stdout, again.String())
	s.check("that it is a replay is said beside it", strings.Contains(again.stderr, "replay"), again.String())
	s.left(p.id, 1)
}

func (p *paidOnce) keyReused(s *stage) {
	other := s.request("order-2", "99")
	r := s.run("submit", "--key", s.key("req-1"), "--withdrawal", other)
	s.check("it is refused, and the fields are named", r.refused(4, "key-reused") && r.fact("Fields") == "withdrawal, amount", r.String())
	s.check("the other submission's values are not shown", !strings.Contains(r.stderr, "10.25") && !strings.Contains(r.stderr, p.first.fact("Rail reference")), r.String())
	s.left(other, 0)
	own := s.run("submit", "--key", s.key("req-2"), "--withdrawal", other)
	s.check("under a key of its own it is sent", own.exit == 0 && own.fact("Result") == "sent", own.String())
	s.left(other, 1)
}

func (p *paidOnce) secondClient(s *stage) {
	r := s.run("submit", "--key", s.key("req-of-client-2"), "--withdrawal", p.id)
	s.check("it is refused, and the holder is named", r.refused(4, "withdrawal-claimed") && r.fact("Holder") == s.key("req-1"), r.String())
	truth := s.run("outcome", "--key", r.fact("Holder"))
	s.check("with that name it can look the truth up", truth.stdout == p.first.stdout, truth.String())
	s.left(p.id, 1)
}

func timedOutAfter(s *stage) {
	id := s.request("order-3", "30")
	key := s.key("req-3")
	r := s.run("submit", "--key", key, "--withdrawal", id, "--timeout", "1s", "--fault", "timeout-after")
	s.check("the outcome is unknown, and the client is told so", r.refused(5, "outcome-unknown"), r.String())
	r = s.run("submit", "--key", key, "--withdrawal", id)
	s.check("the same key is in flight, and is not sent again", r.refused(5, "in-flight") && r.fact("State") == "unknown", r.String())
	r = s.run("submit", "--key", s.key("req-3b"), "--withdrawal", id)
	s.check("another key is refused, and the holder is named", r.refused(4, "withdrawal-claimed") && r.fact("Holder") == key, r.String())
	r = s.run("in-flight")
	s.say("%s", s.paint.dim(indent(strings.TrimSpace(r.stdout), "     ")))
	s.check("it is on the operator's list", strings.Contains(r.stdout, id), r.String())
	s.resolveFromBook(id, key)
}

// resolveFromBook is the operator who looks at the rail's book and says what it says.
func (s *stage) resolveFromBook(id, key string) {
	references := s.looked(id)
	s.check("the operator sees that the money left", len(references) == 1, fmt.Sprint(references))
	if len(references) == 0 {
		return
	}
	resolved := s.run("resolve", "--key", key, "--sent", references[0], "--reason", "no answer from the rail",
		"--evidence", "the rail's book", "--confirm", id[len(id)-tokenLength:])
	s.check("the operator's word is on record", resolved.exit == 0 && resolved.fact("Rail reference") == references[0], resolved.String())
	replayed := s.run("submit", "--key", key, "--withdrawal", id)
	s.check("submit replays it, byte for byte", replayed.exit == 0 && replayed.stdout == resolved.stdout, replayed.String())
	s.left(id, 1)
}

func timedOutBefore(s *stage) {
	id := s.request("order-4", "40")
	key := s.key("req-4")
	submit := []string{"submit", "--key", key, "--withdrawal", id, "--timeout", "2s", "--fault", "timeout-before"}
	release := []string{"release", "--key", key, "--reason", "timed out", "--evidence", "not in the rail's book", "--confirm", id[len(id)-tokenLength:]}
	s.show(submit, " &")
	wait := s.start(submit...)
	sending := s.eventually(func() bool { return s.state(key) == "sending" })
	s.check("the attempt is under way", sending, "its state is "+s.state(key))
	r := s.run(release...)
	s.check("a release is refused while it may be running", r.refused(4, "attempt-running"), r.String())
	r = s.told(wait())
	s.check("the outcome is unknown, and the client is told so", r.refused(5, "outcome-unknown"), r.String())
	references := s.looked(id)
	s.check("the operator sees that nothing left", len(references) == 0, fmt.Sprint(references))
	r = s.run(release...)
	s.check("now that the attempt is over it is released", r.exit == 0 && r.fact("Released") == id, r.String())
	r = s.run("submit", "--key", s.key("req-4b"), "--withdrawal", id)
	s.check("another key becomes the holder, and it is sent", r.exit == 0 && r.fact("Result") == "sent", r.String())
	r = s.run("submit", "--key", key, "--withdrawal", id)
	s.check("the first key comes late, and is told the holder", r.refused(4, "withdrawal-claimed") && r.fact("Holder") == s.key("req-4b"), r.String())
	s.left(id, 1)
}

// state returns how far a key's submission has got.
func (s *stage) state(key string) string {
	r := s.runQuietly(s.ctx, "outcome", "--key", key, "--json")
	var d statusDocument
	if err := json.Unmarshal([]byte(r.stdout), &d); err != nil {
		return "not known: " + r.stderr
	}
	return d.State
}

func refused(s *stage) {
	id := s.request("order-5", "50")
	key := s.key("req-5")
	r := s.run("submit", "--key", key, "--withdrawal", id, "--fault", "refuse")
	s.check("the client is told that the rail refused", r.refused(5, "in-flight") && r.fact("State") == "refused", r.String())
	s.left(id, 0)
	r = s.run("submit", "--key", s.key("req-5b"), "--withdrawal", id)
	s.check("the key keeps its claim", r.refused(4, "withdrawal-claimed") && r.fact("Holder") == key, r.String())
	r = s.run("release", "--key", key, "--reason", "the rail is open again", "--evidence", "the rail's refusal", "--confirm", id[len(id)-tokenLength:])
	s.check("a person releases it", r.exit == 0 && r.fact("Released") == id, r.String())
	r = s.run("submit", "--key", key, "--withdrawal", id)
	s.check("and it is sent, even under the same key", r.exit == 0 && r.fact("Result") == "sent", r.String())
	s.left(id, 1)
}

func killed(s *stage) {
	id := s.request("order-6", "60")
	key := s.key("req-6")
	args := []string{"submit", "--key", key, "--withdrawal", id, "--fault", "die-after"}
	s.show(args, "")
	r := s.start(args...)()
	s.check("the process is dead, and said nothing", r.killed && r.stdout == "" && r.stderr == "", r.String())
	s.left(id, 1)
	r = s.run("submit", "--key", key, "--withdrawal", id)
	s.check("the key is in flight, and is not sent again", r.refused(5, "in-flight"), r.String())
	s.resolveFromBook(id, key)
}

func raced(s *stage) {
	const racers = 8
	id := s.request("order-7", "70")
	waits := make([]func() ran, racers)
	for i := range waits {
		args := []string{"submit", "--key", s.key(fmt.Sprintf("req-7-%d", i+1)), "--withdrawal", id}
		s.show(args, " &")
		waits[i] = s.start(args...)
	}
	var results [racers]ran
	winner, winners := "", 0
	for i, wait := range waits {
		results[i] = wait()
		if results[i].exit == 0 {
			winner, winners = s.key(fmt.Sprintf("req-7-%d", i+1)), winners+1
		}
	}
	s.check("exactly one of them won: "+winner, winners == 1, fmt.Sprintf("%d won: %v", winners, results))
	told := 0
	for _, r := range results {
		if r.refused(4, "withdrawal-claimed") && r.fact("Holder") == winner {
			told++
		}
	}
	s.check("the other seven were told the winner's name", told == racers-1, fmt.Sprintf("%d were: %v", told, results))
	s.left(id, 1)
}

func verified(s *stage) {
	r := s.run("verify")
	s.say("     %s", s.paint.dim(strings.TrimSpace(r.stdout)))
	s.check("the log is clean", r.exit == 0 && strings.HasPrefix(r.stdout, "Clean:"), r.String())
	r = s.run("in-flight")
	clear := r.exit == 0
	for _, id := range s.withdrawals {
		clear = clear && !strings.Contains(r.stdout, id)
	}
	s.check("nothing of this demo is in flight", clear, r.String())
}

// countedOnce counts every withdrawal in the rail's book.
func countedOnce(s *stage) {
	r := s.run("rail-book", "--json")
	var book bookDocument
	if err := json.Unmarshal([]byte(r.stdout), &book); err != nil {
		s.check("the rail's book can be read", false, err.Error()+"\n"+r.String())
		return
	}
	p := &page{now: s.now()}
	var rows [][]string
	once := len(book.Left) == len(s.withdrawals)
	for i, id := range s.withdrawals {
		once = once && book.Left[id] == 1
		rows = append(rows, []string{fmt.Sprintf("order-%d%s", i+1, s.suffix), id, fmt.Sprint(book.Left[id])})
	}
	p.table([]string{"REFERENCE", "WITHDRAWAL", "TIMES IT LEFT"}, rows)
	s.say("%s", indent(strings.TrimSpace(p.String()), "     "))
	s.check(fmt.Sprintf("all %d withdrawals left, each of them once, and nothing else did", len(s.withdrawals)), once, r.String())
}
