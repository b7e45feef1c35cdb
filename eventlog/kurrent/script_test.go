package kurrent

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/serverfeatures"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"holdfast/eventlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a server that answers every request as a test says, to show what the client
// makes of it. It keeps no streams; kurrenttest has a server that does.
type script struct {
	streams.UnimplementedStreamsServer
	serverfeatures.UnimplementedServerFeaturesServer

	mu sync.Mutex
	// append and read answer requests. By default appends succeed and nothing is there.
	append func(n int, options *streams.AppendReq_Options, s streams.Streams_AppendServer) error
	read   func(n int, options *streams.ReadReq_Options, s streams.Streams_ReadServer) error

	// keeper, if set, answers what append and read do not.
	keeper *keeper
	// lose, if set, says with what error the keeper's answer to an append is lost.
	lose func(n int) error
	// deaf, if set, is waited for before the server says what it can do.
	deaf chan struct{}
	// leader is the address that it says the leader has.
	leader string

	appends, reads int
	headers        []metadata.MD
	address        string
	server         *grpc.Server
	open, accepted atomic.Int64 // connections
}

// serve starts a scripted server, on an address of its own; the test stops it.
func serve(t testing.TB) *script {
	t.Helper()
	s := &script{address: "127.0.0.1:0"}
	s.start(t)
	t.Cleanup(s.stop)
	return s
}

// start makes the server listen, on the address that it had before if it had one.
func (s *script) start(t testing.TB) {
	t.Helper()
	listener, err := net.Listen("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	s.address = listener.Addr().String()
	s.server = grpc.NewServer(grpc.MaxRecvMsgSize(17<<20), grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}))
	streams.RegisterStreamsServer(s.server, s)
	serverfeatures.RegisterServerFeaturesServer(s.server, s)
	gossip.RegisterGossipServer(s.server, &gossiping{script: s})
	server := s.server
	go func() { _ = server.Serve(&counted{listener, s}) }()
}

func (s *script) stop() { s.server.Stop() }

// counted counts a listener's connections.
type counted struct {
	net.Listener
	s *script
}

func (l *counted) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.s.open.Add(1)
	l.s.accepted.Add(1)
	return &countedConn{Conn: conn, s: l.s}, nil
}

type countedConn struct {
	net.Conn
	s    *script
	once sync.Once
}

func (c *countedConn) Close() error {
	c.once.Do(func() { c.s.open.Add(-1) })
	return c.Conn.Close()
}

// GetSupportedMethods says nothing of use, as old servers do, once the server is not deaf.
func (s *script) GetSupportedMethods(ctx context.Context, _ *shared.Empty) (*serverfeatures.SupportedMethods, error) {
	s.mu.Lock()
	deaf := s.deaf
	s.mu.Unlock()
	if deaf != nil {
		select {
		case <-deaf:
		case <-ctx.Done():
		}
	}
	return nil, status.Error(codes.Unimplemented, "an old server")
}

// gossiping says who leads.
type gossiping struct {
	gossip.UnimplementedGossipServer
	*script
}

func (g *gossiping) Read(context.Context, *shared.Empty) (*gossip.ClusterInfo, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	host, port, err := net.SplitHostPort(g.leader)
	if err != nil {
		return nil, status.Error(codes.Unavailable, "no leader")
	}
	number, err := strconv.Atoi(port)
	return &gossip.ClusterInfo{Members: []*gossip.MemberInfo{{
		State: gossip.MemberInfo_Leader, IsAlive: true, HttpEndPoint: &gossip.EndPoint{Address: host, Port: uint32(number)},
	}}}, err
}

// cluster starts two servers of which one leads, and opens a log on them. The function
// that it returns lets another lead.
func cluster(t *testing.T, options *Options) (l *Log, a, b *script, lead func(*script)) {
	t.Helper()
	a, b = serve(t), serve(t)
	lead = func(s *script) {
		for _, node := range []*script{a, b} {
			node.mu.Lock()
			node.leader = s.address
			node.mu.Unlock()
		}
	}
	lead(a)
	l, err := Open(t.Context(), "esdb://"+a.address+","+b.address+"?tls=false&maxDiscoverAttempts=5&discoveryInterval=10&gossipTimeout=1", options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, a, b, lead
}

// Append takes in a request and answers it as the test says.
func (s *script) Append(stream streams.Streams_AppendServer) error {
	var options *streams.AppendReq_Options
	var proposed []*streams.AppendReq_ProposedMessage
	for {
		req, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if o := req.GetOptions(); o != nil {
			options = o
		} else {
			proposed = append(proposed, req.GetProposedMessage())
		}
	}
	s.mu.Lock()
	n, answer, lose := s.appends, s.append, s.lose
	s.appends++
	s.note(stream.Context())
	s.mu.Unlock()
	switch {
	case answer != nil:
		return answer(n, options, stream)
	case s.keeper != nil:
		answer := s.keeper.append(options, proposed)
		if lose != nil {
			if err := lose(n); err != nil {
				return err
			}
		}
		return stream.SendAndClose(answer)
	}
	return stream.SendAndClose(took(0, 100))
}

// Read answers a request as the test says.
func (s *script) Read(req *streams.ReadReq, stream streams.Streams_ReadServer) error {
	s.mu.Lock()
	n, answer := s.reads, s.read
	s.reads++
	s.note(stream.Context())
	s.mu.Unlock()
	switch {
	case answer != nil:
		return answer(n, req.GetOptions(), stream)
	case s.keeper != nil:
		return s.keeper.read(req.GetOptions(), stream)
	}
	return stream.Send(notFound(req))
}

func (s *script) note(ctx context.Context) {
	md, _ := metadata.FromIncomingContext(ctx)
	s.headers = append(s.headers, md)
}

// on sets how requests are answered from now on.
func (s *script) on(append func(n int, o *streams.AppendReq_Options, s streams.Streams_AppendServer) error, read func(n int, o *streams.ReadReq_Options, s streams.Streams_ReadServer) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.append, s.read, s.appends, s.reads = append, read, 0, 0
}

func (s *script) counts() (appends, reads int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.appends, s.reads
}

func notFound(req *streams.ReadReq) *streams.ReadResp {
	return &streams.ReadResp{Content: &streams.ReadResp_StreamNotFound_{StreamNotFound: &streams.ReadResp_StreamNotFound{
		StreamIdentifier: req.GetOptions().GetStream().GetStreamIdentifier(),
	}}}
}

// took is the answer to an append that succeeded: the last event's revision and position;
// no position where that is 0.
func took(revision, position uint64) *streams.AppendResp {
	success := &streams.AppendResp_Success{CurrentRevisionOption: &streams.AppendResp_Success_CurrentRevision{CurrentRevision: revision}}
	if position == 0 {
		success.PositionOption = &streams.AppendResp_Success_NoPosition{NoPosition: &shared.Empty{}}
	} else {
		success.PositionOption = &streams.AppendResp_Success_Position{Position: &streams.AppendResp_Position{CommitPosition: position, PreparePosition: position}}
	}
	return &streams.AppendResp{Result: &streams.AppendResp_Success_{Success: success}}
}

// lost is the answer to an append that conflicts.
func lost() *streams.AppendResp {
	return &streams.AppendResp{Result: &streams.AppendResp_WrongExpectedVersion_{WrongExpectedVersion: &streams.AppendResp_WrongExpectedVersion{
		ExpectedRevisionOption: &streams.AppendResp_WrongExpectedVersion_ExpectedNoStream{ExpectedNoStream: &shared.Empty{}},
		CurrentRevisionOption:  &streams.AppendResp_WrongExpectedVersion_CurrentRevision{CurrentRevision: 41},
	}}}
}

// holding answers a reading with one event.
func holding(stream string, revision, position uint64) *streams.ReadResp {
	return &streams.ReadResp{Content: &streams.ReadResp_Event{Event: &streams.ReadResp_ReadEvent{
		Event: &streams.ReadResp_ReadEvent_RecordedEvent{
			Id:               &shared.UUID{Value: &shared.UUID_String_{String_: uuid.NewString()}},
			StreamIdentifier: &shared.StreamIdentifier{StreamName: []byte(stream)},
			StreamRevision:   revision, CommitPosition: position, PreparePosition: position,
			Metadata: map[string]string{"type": "Tested", "content-type": "application/json", "created": "17000000000000000"},
		},
		Position: &streams.ReadResp_ReadEvent_CommitPosition{CommitPosition: position},
	}}}
}

// brief are options for tests in which nothing takes long.
func brief() *Options {
	return &Options{Patience: 2 * time.Second, CallTimeout: time.Second, Unseen: 100 * time.Millisecond}
}

// keeping starts a server that keeps streams; the test stops it.
func keeping(t testing.TB) *script {
	t.Helper()
	s := serve(t)
	s.keeper = newKeeper()
	return s
}

// dial opens a log on a scripted server; the test closes it.
func dial(t *testing.T, s *script, options *Options) *Log {
	t.Helper()
	if options == nil {
		options = brief()
	}
	l, err := Open(t.Context(), s.url(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func tested(stream string, at uint64, n int) eventlog.StreamAppend {
	a := eventlog.StreamAppend{Stream: stream, At: at}
	for range n {
		a.Events = append(a.Events, eventlog.Event{ID: uuid.New(), Type: "Tested"})
	}
	return a
}

// url names the server; what waits for it to come back does not wait long.
func (s *script) url() string {
	return "esdb://" + s.address + "?tls=false&maxDiscoverAttempts=2&discoveryInterval=10&gossipTimeout=1"
}
