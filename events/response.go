package events

// Response is what a rail, or the composer of an answer, said: bytes that are kept and
// replayed verbatim, and their media type.
type Response struct {
	MediaType string `json:"media_type"`
	// Body is in base64 in the log, so that any bytes survive as they are.
	Body []byte `json:"body"`
}
