package integration

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"holdfast/internal/kurrentnode"
)

// TestDouble runs the suite on the double, in a process of its own and by its URL alone,
// as if it were a server. What is passed here is that the suite and the adapter fit each
// other; not that a server is as the double has it.
func TestDouble(t *testing.T) {
	p := startNode(t)
	suite(t, &server{
		url: p.url, restarts: 5, unraced: true,
		restart:    func(t *testing.T) { p.order(t, "restart") },
		softDelete: func(t *testing.T, stream string) { p.order(t, "delete "+stream) },
		truncate: func(t *testing.T, stream string, before uint64) {
			p.order(t, fmt.Sprint("truncate ", stream, " ", before)) // the double does not heed metadata
			(&operator{p.url}).truncate(t, stream, before)
		},
	})
}

// nodeVariable tells a process of this test's to be a node.
const nodeVariable = "HOLDFAST_TEST_NODE"

// nodeProcess is a node in a process of its own.
type nodeProcess struct {
	url    string
	mu     sync.Mutex
	orders *bufio.Writer
	done   *bufio.Scanner
}

// startNode starts one, which the test ends.
func startNode(t *testing.T) *nodeProcess {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "-test.run=^TestNodeProcess$")
	cmd.Env = append(os.Environ(), nodeVariable+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // the node ends with its orders
		_ = cmd.Wait() // and where it does not, it is killed with the test's context
	})
	p := &nodeProcess{orders: bufio.NewWriter(in), done: bufio.NewScanner(out)}
	p.url = p.answer(t, "the node's URL")
	return p
}

// order lets the node do something, and waits until it has.
func (p *nodeProcess) order(t *testing.T, order string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintln(p.orders, order)
	if err := p.orders.Flush(); err != nil {
		t.Fatal(err)
	}
	if done := p.answer(t, order); done != order {
		t.Fatalf("the node answers %q to %q", done, order)
	}
}

func (p *nodeProcess) answer(t *testing.T, what string) string {
	t.Helper()
	if !p.done.Scan() {
		t.Fatalf("the node ended before %s: %v", what, p.done.Err())
	}
	return p.done.Text()
}

// TestNodeProcess is such a process. It prints its URL, and every order once it is carried
// out. Where it can, it is as awkward as a server: it writes events of its own all the
// time, and reads from no position at which no event begins.
func TestNodeProcess(t *testing.T) {
	if os.Getenv(nodeVariable) == "" {
		t.Skip("this is the other side of TestDouble")
	}
	n := kurrentnode.Keep(t)
	n.On(nil, func(_ int, o *streams.ReadReq_Options, r streams.Streams_ReadServer) error {
		if at := o.GetAll().GetPosition().GetCommitPosition(); at > 0 && o.GetReadDirection() == streams.ReadReq_Options_Forwards && o.GetSubscription() == nil {
			r = &strict{Streams_ReadServer: r, at: at}
		}
		return n.Streams.Read(o, r)
	})
	over, quiet := make(chan struct{}), make(chan struct{})
	go chatter(n, over, quiet)
	defer func() {
		close(over)
		<-quiet
	}()
	fmt.Println(n.URL())
	for orders := bufio.NewScanner(os.Stdin); orders.Scan(); fmt.Println(orders.Text()) {
		switch words := strings.Fields(orders.Text()); words[0] {
		case "restart":
			n.Stop()
			n.Listen(t)
		case "delete":
			n.Streams.Delete(words[1])
		case "truncate":
			var before uint64
			if _, err := fmt.Sscan(words[2], &before); err != nil {
				t.Fatal(err)
			}
			n.Streams.Truncate(words[1], before)
		}
	}
}

// chatter lets a node write statistics, as a server does now and then.
func chatter(n *kurrentnode.Node, over <-chan struct{}, quiet chan<- struct{}) {
	defer close(quiet)
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		n.Streams.Put("$stats-"+n.Address(), "$statsCollected", "{}")
		select {
		case <-again.C:
		case <-over:
			return
		}
	}
}

// strict refuses to read from a position at which no event begins.
type strict struct {
	streams.Streams_ReadServer
	at uint64 // 0 once it is seen
}

func (s *strict) Send(answer *streams.ReadResp) error {
	if at := answer.GetEvent().GetEvent().GetCommitPosition(); s.at > 0 && at != s.at {
		return status.Error(codes.InvalidArgument, "Trying to read from an invalid position.")
	}
	s.at = 0
	return s.Streams_ReadServer.Send(answer)
}
