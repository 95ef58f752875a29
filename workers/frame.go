package workers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// WireVersion is the version of the frame, the header and the bodies. A worker refuses every other.
const WireVersion = 1

const (
	magic    = "ridgepoint/"
	unsigned = "-"
)

// Header is the signed envelope of a payload. Times are on Redis's clock, so that hosts may disagree about theirs.
type Header struct {
	Version   int    `json:"version"`
	Kind      Kind   `json:"kind"`
	Queue     string `json:"queue"`      // where it may be taken from, and nowhere else
	TaskID    string `json:"task_id"`    // under which id, and no other
	Scheduler string `json:"scheduler"`  // whose work it is
	IssuedMS  int64  `json:"issued_ms"`  // Unix milliseconds
	ExpiresMS int64  `json:"expires_ms"` // 0: never
}

// Place is where a payload was found. It must be where its header says.
type Place struct {
	Kind   Kind
	Queue  string
	TaskID string
	Now    time.Time // on Redis's clock
}

// Seal frames and signs a payload: "ridgepoint/1 <key id> <mac>\n<header>\n<body>", the MAC being HMAC-SHA-256 over header,
// newline and body. With a nil keyring key id and mac are "-". The header's version is set here.
func Seal(ring *Keyring, h Header, body any) ([]byte, error) {
	h.Version = WireVersion
	head, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("seal %s: header: %w", h.TaskID, err)
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("seal %s: body: %w", h.TaskID, err)
	}
	message := make([]byte, 0, len(head)+1+len(text))
	message = append(append(append(message, head...), '\n'), text...)
	id, mac := unsigned, unsigned
	if ring != nil {
		id, mac = ring.sign(message)
	}
	b := fmt.Appendf(nil, "%s%d %s %s\n", magic, WireVersion, id, mac)
	b = append(b, message...)
	if limit := h.Kind.MaxBytes(); len(b) > limit {
		return nil, refuse(ReasonTooLarge, "%s is %d bytes; a %s payload has at most %d", h.TaskID, len(b), h.Kind, limit)
	}
	return b, nil
}

// Open checks a payload's size, version, signature, place and expiry, in that order, and decodes its body into body, whose Validate, if it has
// one, must accept it. Nothing
// but the frame's first line is parsed before the signature holds. Every error is a *Refusal.
func Open(ring *Keyring, payload []byte, at Place, body any) (Header, error) {
	if limit := at.Kind.MaxBytes(); len(payload) > limit {
		return Header{}, refuse(ReasonTooLarge, "%d bytes; a %s payload has at most %d", len(payload), at.Kind, limit)
	}
	message, err := openFrame(ring, payload)
	if err != nil {
		return Header{}, err
	}
	head, text, ok := bytes.Cut(message, []byte{'\n'})
	if !ok {
		return Header{}, refuse(ReasonMalformed, "no body after the header")
	}
	var h Header
	if err := strictJSON(head, &h); err != nil {
		return Header{}, refuse(ReasonMalformed, "header: %v", err)
	}
	switch {
	case h.Version != WireVersion:
		return h, refuse(ReasonVersion, "header has version %d; want %d", h.Version, WireVersion)
	case h.Kind != at.Kind || h.Queue != at.Queue || h.TaskID != at.TaskID:
		return h, refuse(ReasonMisplaced, "signed as %s %.80q for %.80q, found as %s %.80q in %.80q", h.Kind, h.TaskID, h.Queue, at.Kind, at.TaskID, at.Queue)
	case h.ExpiresMS != 0 && at.Now.UnixMilli() > h.ExpiresMS:
		return h, refuse(ReasonExpired, "%s expired %d ms ago", h.TaskID, at.Now.UnixMilli()-h.ExpiresMS)
	}
	if err := strictJSON(text, body); err != nil {
		return h, refuse(ReasonMalformed, "body of %s: %v", h.TaskID, err)
	}
	if v, ok := body.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return h, refuse(ReasonMalformed, "body of %s: %v", h.TaskID, err)
		}
	}
	return h, nil
}

// openFrame checks magic, version and signature and returns the signed message.
func openFrame(ring *Keyring, payload []byte) ([]byte, error) {
	first, message, ok := bytes.Cut(payload, []byte{'\n'})
	if !ok || len(first) > 200 || !bytes.HasPrefix(first, []byte(magic)) {
		return nil, refuse(ReasonMalformed, "not a Ridgepoint payload: %.40q", payload)
	}
	fields := strings.Split(string(first[len(magic):]), " ")
	if fields[0] != fmt.Sprint(WireVersion) {
		return nil, refuse(ReasonVersion, "payload has version %.20q; this build reads %d: run the same release on schedulers and workers", fields[0], WireVersion)
	}
	if len(fields) != 3 {
		return nil, refuse(ReasonMalformed, "first line %.80q: want version, key id and mac", first)
	}
	id, mac := fields[1], fields[2]
	switch {
	case ring == nil && (id != unsigned || mac != unsigned):
		return nil, refuse(ReasonSignature, "signed with key %.16q, but no key file is configured here", id)
	case ring == nil:
		return message, nil
	case id == unsigned || mac == unsigned:
		return nil, refuse(ReasonUnsigned, "not signed, and this fleet has a key")
	case !ring.verify(id, mac, message):
		return nil, refuse(ReasonSignature, "signature of key %.16q does not hold: another key file, or altered on the way", id)
	default:
		return message, nil
	}
}

// strictJSON decodes exactly one JSON value without unknown fields.
func strictJSON(b []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON value")
	}
	return nil
}
