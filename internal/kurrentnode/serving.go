package kurrentnode

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/serverfeatures"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// serving answers for streams.
type serving struct {
	streams.UnimplementedStreamsServer
	*Node
}

func (n *serving) Append(r streams.Streams_AppendServer) error {
	options, proposed, err := received(r)
	if err != nil {
		return err
	}
	n.mu.Lock()
	i, answer, before, lose := n.appends, n.append, n.before, n.lose
	n.appends++
	n.note(r.Context())
	n.mu.Unlock()
	switch {
	case answer != nil:
		return answer(i, options, r)
	case n.Streams == nil:
		return r.SendAndClose(Took(0, 100))
	}
	if before != nil {
		if err := before(r.Context(), i); err != nil {
			return err
		}
	}
	if err := n.users.allow(r, writing(string(options.GetStreamIdentifier().GetStreamName()))); err != nil {
		return err
	}
	keeper, err := n.keeper(r, true)
	if err != nil {
		return err
	}
	if limit := keeper.tooLarge(proposed); limit > 0 {
		return tooLarge(r, limit)
	}
	decided, err := keeper.append(r, options, proposed)
	if lose != nil {
		if err := lose(i); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	return r.SendAndClose(decided)
}

// received takes in an append.
func received(r streams.Streams_AppendServer) (options *streams.AppendReq_Options, proposed []*streams.AppendReq_ProposedMessage, err error) {
	for {
		req, err := r.Recv()
		if errors.Is(err, io.EOF) {
			return options, proposed, nil
		}
		if err != nil {
			return nil, nil, err
		}
		if o := req.GetOptions(); o != nil {
			options = o
		} else {
			proposed = append(proposed, req.GetProposedMessage())
		}
	}
}

// append decides an append, and waits until what it wrote can be read.
func (k *Streams) append(r grpc.ServerStream, o *streams.AppendReq_Options, proposed []*streams.AppendReq_ProposedMessage) (*streams.AppendResp, error) {
	d := k.decide(o, proposed)
	switch d.verdict {
	case wrong:
		return Lost(), nil
	case gone:
		return nil, Gone(r, string(o.GetStreamIdentifier().GetStreamName()))
	case deposed:
		return nil, errDeposed
	case unready: // no answer to this one will ever come
		return nil, k.until(r.Context(), func() (bool, error) { return false, nil })
	}
	if d.lost {
		return Took(d.last.revision, 0), nil
	}
	err := k.until(r.Context(), func() (bool, error) {
		if d.term != k.term {
			return false, errDeposed
		}
		return d.last.index < k.committed, nil
	})
	if err != nil {
		return nil, err
	}
	return Took(d.last.revision, d.last.position), nil
}

// until waits until something holds, or fails, for CommitTimeout at most.
func (k *Streams) until(ctx context.Context, holds func() (bool, error)) error {
	timer := time.NewTimer(k.CommitTimeout)
	defer timer.Stop()
	for {
		k.mu.Lock()
		ok, err := holds()
		changed := k.changed
		k.mu.Unlock()
		if ok || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-timer.C:
			return errCommitTimeout
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (n *serving) Read(req *streams.ReadReq, r streams.Streams_ReadServer) error {
	n.mu.Lock()
	i, answer := n.reads, n.read
	n.reads++
	n.note(r.Context())
	n.mu.Unlock()
	switch {
	case answer != nil:
		return answer(i, req.GetOptions(), r)
	case n.Streams == nil:
		return r.Send(NotFound(req.GetOptions()))
	}
	if err := n.users.allow(r, reading(req.GetOptions())); err != nil {
		return err
	}
	keeper, err := n.keeper(r, false)
	if err != nil {
		return err
	}
	return keeper.Read(req.GetOptions(), r)
}

// keeper returns the streams that a request is for: the node's own; or the leader's, for an
// append that did not ask for the leader, which the node hands on.
func (n *Node) keeper(r grpc.ServerStream, writing bool) (*Streams, error) {
	if n.cluster == nil {
		return n.Streams, nil
	}
	md, _ := metadata.FromIncomingContext(r.Context())
	wanted := len(md.Get("requires-leader")) > 0 && md.Get("requires-leader")[0] == "true"
	switch leader := n.cluster.Leader(); {
	case leader == n, !writing && !wanted:
		return n.Streams, nil
	case leader == nil:
		return nil, errNotReady
	case wanted:
		return nil, notLeader(r, leader)
	default:
		return leader.Streams, nil
	}
}

// Delete deletes a stream so that it can be written to again. It expects nothing.
func (n *serving) Delete(ctx context.Context, req *streams.DeleteReq) (*streams.DeleteResp, error) {
	k, err := n.deleter(ctx)
	if err != nil {
		return nil, err
	}
	name := string(req.GetOptions().GetStreamIdentifier().GetStreamName())
	k.Delete(name)
	return &streams.DeleteResp{PositionOption: &streams.DeleteResp_Position_{Position: &streams.DeleteResp_Position{}}}, nil
}

// Tombstone deletes a stream for good. It expects nothing.
func (n *serving) Tombstone(ctx context.Context, req *streams.TombstoneReq) (*streams.TombstoneResp, error) {
	k, err := n.deleter(ctx)
	if err != nil {
		return nil, err
	}
	k.Entomb(string(req.GetOptions().GetStreamIdentifier().GetStreamName()))
	return &streams.TombstoneResp{PositionOption: &streams.TombstoneResp_Position_{Position: &streams.TombstoneResp_Position{}}}, nil
}

// deleter returns the streams that an administrator deletes from.
func (n *Node) deleter(ctx context.Context) (*Streams, error) {
	if n.Streams == nil {
		return nil, status.Error(codes.Unimplemented, "a node that keeps nothing deletes nothing")
	}
	user, err := n.users.of(ctx)
	switch {
	case err != nil:
		return nil, err
	case n.users != nil && !user.Admin:
		return nil, status.Error(codes.PermissionDenied, "Access Denied")
	case n.cluster == nil:
		return n.Streams, nil
	}
	leader := n.cluster.Leader()
	if leader == nil {
		return nil, errNotReady
	}
	return leader.Streams, nil
}

func (n *Node) note(ctx context.Context) {
	md, _ := metadata.FromIncomingContext(ctx)
	n.headers = append(n.headers, md)
}

// describing says what the node can do: nothing of use, as old servers do.
type describing struct {
	serverfeatures.UnimplementedServerFeaturesServer
	*Node
}

func (n *describing) GetSupportedMethods(ctx context.Context, _ *shared.Empty) (*serverfeatures.SupportedMethods, error) {
	n.mu.Lock()
	deaf := n.deaf
	n.mu.Unlock()
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
	*Node
}

func (n *gossiping) Read(context.Context, *shared.Empty) (*gossip.ClusterInfo, error) {
	if n.cluster != nil {
		return n.cluster.info()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	leader, err := member(n.leader, gossip.MemberInfo_Leader)
	if err != nil {
		return nil, status.Error(codes.Unavailable, "no leader")
	}
	return &gossip.ClusterInfo{Members: []*gossip.MemberInfo{leader}}, nil
}

func member(address string, state gossip.MemberInfo_VNodeState) (*gossip.MemberInfo, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	number, err := strconv.Atoi(port)
	return &gossip.MemberInfo{State: state, IsAlive: true, HttpEndPoint: &gossip.EndPoint{Address: host, Port: uint32(number)}}, err
}
