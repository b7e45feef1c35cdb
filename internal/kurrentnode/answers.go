package kurrentnode

import (
	"net"
	"strconv"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Took is the answer to an append that succeeded, with the last event's revision and
// position; without a position where that is 0, as for a repetition that cannot be read.
func Took(revision, position uint64) *streams.AppendResp {
	success := &streams.AppendResp_Success{CurrentRevisionOption: &streams.AppendResp_Success_CurrentRevision{CurrentRevision: revision}}
	if position == 0 {
		success.PositionOption = &streams.AppendResp_Success_NoPosition{NoPosition: &shared.Empty{}}
	} else {
		success.PositionOption = &streams.AppendResp_Success_Position{Position: &streams.AppendResp_Position{CommitPosition: position, PreparePosition: position}}
	}
	return &streams.AppendResp{Result: &streams.AppendResp_Success_{Success: success}}
}

// Lost is the answer to an append that conflicts. The revision in it is made up.
func Lost() *streams.AppendResp {
	return &streams.AppendResp{Result: &streams.AppendResp_WrongExpectedVersion_{WrongExpectedVersion: &streams.AppendResp_WrongExpectedVersion{
		ExpectedRevisionOption: &streams.AppendResp_WrongExpectedVersion_ExpectedNoStream{ExpectedNoStream: &shared.Empty{}},
		CurrentRevisionOption:  &streams.AppendResp_WrongExpectedVersion_CurrentRevision{CurrentRevision: 41},
	}}}
}

// Elsewhere answers every append by naming the node that leads.
func Elsewhere(leader *Node) Append {
	return func(_ int, _ *streams.AppendReq_Options, r streams.Streams_AppendServer) error {
		return notLeader(r, leader)
	}
}

// notLeader names the node that leads.
func notLeader(r grpc.ServerStream, leader *Node) error {
	host, port, err := net.SplitHostPort(leader.Address())
	if err != nil {
		return err
	}
	r.SetTrailer(metadata.Pairs("exception", "not-leader", "leader-endpoint-host", host, "leader-endpoint-port", port))
	return status.Error(codes.NotFound, "Leader info available")
}

// Gone answers a request for a stream that was deleted for good. The client panics without
// the stream's name.
func Gone(r grpc.ServerStream, stream string) error {
	r.SetTrailer(metadata.Pairs("exception", "stream-deleted", "stream-name", stream))
	return status.Errorf(codes.FailedPrecondition, "Event stream '%s' is deleted.", stream)
}

func tooLarge(r grpc.ServerStream, limit int) error {
	r.SetTrailer(metadata.Pairs("exception", "maximum-append-size-exceeded", "maximum-append-size", strconv.Itoa(limit)))
	return status.Errorf(codes.InvalidArgument, "Maximum Append Size of %d Exceeded.", limit)
}

func denied(r grpc.ServerStream) error {
	r.SetTrailer(metadata.Pairs("exception", "access-denied"))
	return status.Error(codes.PermissionDenied, "Access Denied")
}

// What a server says of an append that it may or may not have carried out.
var (
	errCommitTimeout = status.Error(codes.Aborted, "Operation timed out: Commit phase timeout.")
	errDeposed       = status.Error(codes.Aborted, "Request canceled by server")
	errNotReady      = status.Error(codes.Unavailable, "Server Is Not Ready")
)

// Holding answers a reading with one event.
func Holding(stream string, revision, position uint64) *streams.ReadResp {
	return found(&streams.ReadResp_ReadEvent_RecordedEvent{
		Id:               &shared.UUID{Value: &shared.UUID_String_{String_: uuid.NewString()}},
		StreamIdentifier: &shared.StreamIdentifier{StreamName: []byte(stream)},
		StreamRevision:   revision, CommitPosition: position, PreparePosition: position,
		Metadata: map[string]string{"type": "Tested", "content-type": "application/json", "created": created},
	})
}

// created is when every event was written, in ticks of 100 ns. The client ends the process
// when it is missing.
const created = "17000000000000000"

func found(e *streams.ReadResp_ReadEvent_RecordedEvent) *streams.ReadResp {
	return &streams.ReadResp{Content: &streams.ReadResp_Event{Event: &streams.ReadResp_ReadEvent{
		Event: e, Position: &streams.ReadResp_ReadEvent_CommitPosition{CommitPosition: e.GetCommitPosition()},
	}}}
}

// NotFound answers a reading of a stream that is not there.
func NotFound(o *streams.ReadReq_Options) *streams.ReadResp {
	return &streams.ReadResp{Content: &streams.ReadResp_StreamNotFound_{StreamNotFound: &streams.ReadResp_StreamNotFound{
		StreamIdentifier: o.GetStream().GetStreamIdentifier(),
	}}}
}

// Confirmed is the first answer to a subscription.
func Confirmed() *streams.ReadResp {
	return &streams.ReadResp{Content: &streams.ReadResp_Confirmation{Confirmation: &streams.ReadResp_SubscriptionConfirmation{SubscriptionId: uuid.NewString()}}}
}

// CaughtUp tells a subscription that all there was has been sent. A reading that gets it
// makes the client panic.
func CaughtUp() *streams.ReadResp {
	return &streams.ReadResp{Content: &streams.ReadResp_CaughtUp_{CaughtUp: &streams.ReadResp_CaughtUp{}}}
}
