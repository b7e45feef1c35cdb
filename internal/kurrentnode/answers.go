package kurrentnode

import (
	"net"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
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
		host, port, err := net.SplitHostPort(leader.Address())
		if err != nil {
			return err
		}
		r.SetTrailer(metadata.Pairs("exception", "not-leader", "leader-endpoint-host", host, "leader-endpoint-port", port))
		return status.Error(codes.NotFound, "Leader info available")
	}
}

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
