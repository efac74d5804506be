package translog

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"

	"github.com/runfence/runfence/machine"
)

// A binary log is a preamble and frames. The preamble is the magic and the
// schema version; a frame is
//
//	4 bytes  length of the payload in 24 bits, then a check byte over it
//	n bytes  payload: a tag, then what the tag says
//	4 bytes  CRC-32C of all bytes before
//
// all numbers little endian. The check byte tells a damaged length from a file
// that ends early, and makes a run of zeros no frame.
const (
	binaryMagic  = "\x8aRFL\r\n\x1a\n"
	preambleSize = len(binaryMagic) + 4
	frameHead    = 4
	frameTail    = 4
)

// Tags of frames. Entries that are rare are the text of their line of JSON,
// without its checksum.
const (
	tagText = iota
	tagRecord
	tagRepeat
	tagSite
)

// Bounds on one entry, in bytes, that writer and reader share. They are what
// bounds the memory a hostile log can take.
const (
	maxHeaderLine = 1 << 19  // the first line, and that of one machine
	maxHeader     = 16 << 20 // all of them
	maxEntry      = 1 << 16
	maxRows       = 1 << 15 // of all machines; rules have no more than half of it
	maxSite       = 1 << 10
	maxSites      = 1 << 13
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

func appendPreamble(b []byte) []byte {
	b = append(b, binaryMagic...)
	return binary.LittleEndian.AppendUint32(b, Schema)
}

// openFrame leaves room for the head of a frame whose payload follows.
func openFrame(b []byte, tag byte) []byte { return append(b, 0, 0, 0, 0, tag) }

// closeFrame ends the frame that begins at start.
func closeFrame(b []byte, start int) []byte {
	n := uint32(len(b) - start - frameHead)
	binary.LittleEndian.PutUint32(b[start:], n|frameCheck(n)<<24)
	return binary.LittleEndian.AppendUint32(b, checksum(b[start:]))
}

func frameCheck(n uint32) uint32 { return (n ^ n>>8 ^ n>>16 ^ 0xa5) & 0xff }

// frameLength returns the length that a frame's head says, if it is a head.
func frameLength(head []byte) (int, bool) {
	w := binary.LittleEndian.Uint32(head)
	n := w & 0xffffff
	return int(n), w>>24 == frameCheck(n)
}

func appendTextFrame(b, object []byte) []byte {
	start := len(b)
	b = append(openFrame(b, tagText), object...)
	return closeFrame(b, start)
}

// A record's frame is its tag, world, Seq and Time, and then a body. The body
// has the parent as a distance, so that the bodies of repeated records are equal.

func appendRecordFrame(b []byte, world int, seq uint64, time int64, body []byte) []byte {
	start := len(b)
	b = openFrame(b, tagRecord)
	b = appendUint(b, uint64(world))
	b = appendUint(b, seq)
	b = binary.LittleEndian.AppendUint64(b, uint64(time))
	b = append(b, body...)
	return closeFrame(b, start)
}

func appendRepeatFrame(b []byte, world int, r *Repeat) []byte {
	start := len(b)
	b = openFrame(b, tagRepeat)
	b = appendUint(b, uint64(world))
	b = appendUint(b, r.First)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.Time))
	b = appendUint(b, uint64(r.Length))
	b = appendUint(b, uint64(r.Count))
	return closeFrame(b, start)
}

// appendSiteFrame gives the next number to a site. Numbers count from 1.
func appendSiteFrame(b []byte, site string) []byte {
	start := len(b)
	b = append(openFrame(b, tagSite), site...)
	return closeFrame(b, start)
}

// A body counts its values in four bits for each list.
const (
	_ = uint(15 - machine.MaxArgs)
	_ = uint(15 - machine.MaxViews)
	_ = uint(15 - machine.MaxIdentity)
)

// What a body has besides its fixed part, in the order of the bits.
const (
	hasGen = 1 << iota
	hasRoot
	hasParent
	hasRow
	hasTarget
	hasTo
	hasValues
	hasCall
	hasResult
	hasRefusal
	hasReason
	hasBy
	hasSite
	hasBits = iota
)

func appendUint(b []byte, v uint64) []byte {
	if v < 0x80 {
		return append(b, byte(v))
	}
	return binary.AppendUvarint(b, v)
}

func appendWords(b []byte, vs []uint64) []byte {
	for _, v := range vs {
		b = appendUint(b, v)
	}
	return b
}

// appendBody writes a record without its Seq and Time. site is the number of
// its site, 0 for none.
func appendBody(b []byte, rec *machine.Record, site uint32) []byte {
	has := 0
	flag := func(bit int, is bool) {
		if is {
			has |= bit
		}
	}
	counts := uint16(rec.NArgs) | uint16(rec.NViews)<<4 | uint16(rec.NCall)<<8 | uint16(rec.NIdentity)<<12
	flag(hasGen, rec.Ref.Gen != 0)
	flag(hasRoot, rec.Root != rec.Ref)
	flag(hasParent, rec.Parent != 0)
	flag(hasRow, rec.Row != machine.NoRowID)
	flag(hasTarget, rec.Target != 0)
	flag(hasTo, rec.To != rec.From)
	flag(hasValues, counts != 0)
	flag(hasCall, rec.Call != machine.NoCall)
	flag(hasResult, answers(rec))
	flag(hasRefusal, rec.Refusal != machine.NotRefused)
	flag(hasReason, rec.Reason != machine.NoReasonID)
	flag(hasBy, blames(rec))
	flag(hasSite, site != 0)
	b = append(b, byte(rec.Kind)|byte(rec.Via)<<4, byte(has), byte(has>>8), byte(rec.Ref.Machine))
	b = appendUint(b, uint64(rec.Ref.Slot))
	if has&hasGen != 0 {
		b = appendUint(b, uint64(rec.Ref.Gen))
	}
	b = appendUint(b, uint64(rec.Event))
	b = appendUint(b, uint64(rec.From))
	if has&hasRoot != 0 {
		b = appendBinaryRef(b, rec.Root)
	}
	if has&hasParent != 0 {
		b = appendUint(b, rec.Seq-rec.Parent)
	}
	if has&hasRow != 0 {
		b = appendUint(b, uint64(rec.Row))
	}
	if has&hasTarget != 0 {
		b = append(b, rec.Target)
	}
	if has&hasTo != 0 {
		b = appendUint(b, uint64(rec.To))
	}
	if has&hasValues != 0 {
		b = append(b, byte(counts), byte(counts>>8))
		b = appendWords(b, rec.Args[:rec.NArgs])
		b = appendWords(b, rec.Views[:rec.NViews])
		b = appendWords(b, rec.CallArgs[:rec.NCall])
		b = appendWords(b, rec.Identity[:rec.NIdentity])
	}
	if has&hasCall != 0 {
		b = appendUint(b, uint64(rec.Call))
	}
	if has&hasResult != 0 {
		b = appendBinaryResult(b, &rec.Result)
	}
	if has&hasRefusal != 0 {
		b = append(b, byte(rec.Refusal))
	}
	if has&hasReason != 0 {
		b = appendUint(b, uint64(rec.Reason))
	}
	if has&hasBy != 0 {
		b = appendBinaryRef(b, rec.By)
		b = appendUint(b, uint64(rec.ByEvent))
	}
	if has&hasSite != 0 {
		b = appendUint(b, uint64(site))
	}
	return b
}

func appendBinaryRef(b []byte, r machine.Ref) []byte {
	b = append(b, byte(r.Machine))
	b = appendUint(b, uint64(r.Slot))
	return appendUint(b, uint64(r.Gen))
}

// What a result has besides its outcome.
const (
	resultAccepted = 1 << (iota + 4)
	resultCode
	resultLast
	resultValue
)

func appendBinaryResult(b []byte, r *machine.Result) []byte {
	has := byte(r.Outcome)
	if r.Accepted {
		has |= resultAccepted
	}
	if r.Code != 0 {
		has |= resultCode
	}
	if r.Last != 0 {
		has |= resultLast
	}
	if r.Value != 0 {
		has |= resultValue
	}
	b = append(b, has)
	if has&resultCode != 0 {
		b = appendUint(b, uint64(uint32(r.Code)))
	}
	if has&resultLast != 0 {
		b = appendUint(b, uint64(uint32(r.Last)))
	}
	if has&resultValue != 0 {
		b = appendUint(b, r.Value)
	}
	return b
}

// Faults of a frame whose checksum holds: no writer made it.
var (
	errShortFrame = errors.New("frame ends early")
	errLongFrame  = errors.New("frame has bytes left over")
	errRange      = errors.New("number out of range")
)

// cursor reads the payload of a frame.
type cursor struct {
	b   []byte
	err error
}

func (c *cursor) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.b = nil
}

func (c *cursor) byte() byte {
	if len(c.b) == 0 {
		c.fail(errShortFrame)
		return 0
	}
	v := c.b[0]
	c.b = c.b[1:]
	return v
}

func (c *cursor) uint() uint64 {
	if len(c.b) > 0 && c.b[0] < 0x80 {
		v := uint64(c.b[0])
		c.b = c.b[1:]
		return v
	}
	return c.longUint()
}

func (c *cursor) longUint() uint64 {
	v, n := binary.Uvarint(c.b)
	switch {
	case n == 0:
		c.fail(errShortFrame)
		return 0
	case n < 0:
		c.fail(errRange)
		return 0
	}
	c.b = c.b[n:]
	return v
}

func (c *cursor) upTo(most uint64) uint64 {
	v := c.uint()
	if v > most {
		c.fail(errRange)
		return 0
	}
	return v
}

func (c *cursor) fixed() uint64 {
	if len(c.b) < 8 {
		c.fail(errShortFrame)
		return 0
	}
	v := binary.LittleEndian.Uint64(c.b)
	c.b = c.b[8:]
	return v
}

func (c *cursor) words(vs []uint64) {
	for i := range vs {
		vs[i] = c.uint()
	}
}

func (c *cursor) ref() machine.Ref {
	return machine.Ref{
		Machine: machine.MachineID(c.byte()),
		Slot:    uint16(c.upTo(math.MaxUint16)), Gen: uint32(c.upTo(math.MaxUint32)),
	}
}

// end returns what went wrong, bytes that are left over included.
func (c *cursor) end() error {
	if c.err == nil && len(c.b) > 0 {
		return errLongFrame
	}
	return c.err
}

// readBody is the inverse of appendBody. rec has its Seq already. It returns
// the number of the record's site.
func (c *cursor) readBody(rec *machine.Record) (site uint32) {
	kind := c.byte()
	has := int(c.byte())
	has |= int(c.byte()) << 8
	rec.Kind, rec.Via = machine.RecordKind(kind&0xf), machine.Via(kind>>4)
	if int(rec.Kind) >= machine.NumRecordKinds || int(rec.Via) >= machine.NumVia || has>>hasBits != 0 {
		c.fail(errRange)
		return 0
	}
	rec.Ref.Machine = machine.MachineID(c.byte())
	rec.Ref.Slot = uint16(c.upTo(math.MaxUint16))
	if has&hasGen != 0 {
		rec.Ref.Gen = uint32(c.upTo(math.MaxUint32))
	}
	rec.Event = machine.EventID(c.upTo(math.MaxUint16))
	rec.From = machine.StateID(c.upTo(math.MaxUint16))
	rec.Root, rec.To = rec.Ref, rec.From
	rec.Row, rec.Call, rec.Reason = machine.NoRowID, machine.NoCall, machine.NoReasonID
	if has&hasRoot != 0 {
		rec.Root = c.ref()
	}
	if has&hasParent != 0 {
		rec.Parent = rec.Seq - c.uint()
	}
	if has&hasRow != 0 {
		rec.Row = machine.RowID(c.upTo(math.MaxUint16))
	}
	if has&hasTarget != 0 {
		rec.Target = c.byte()
	}
	if has&hasTo != 0 {
		rec.To = machine.StateID(c.upTo(math.MaxUint16))
	}
	if has&hasValues != 0 {
		c.readValues(rec)
	}
	if has&hasCall != 0 {
		rec.Call = machine.CallID(c.upTo(math.MaxUint16))
	}
	if has&hasResult != 0 {
		c.readResult(&rec.Result)
	}
	if has&hasRefusal != 0 {
		rec.Refusal = machine.RefusalKind(c.byte())
		if int(rec.Refusal) >= machine.NumRefusalKinds {
			c.fail(errRange)
		}
	}
	if has&hasReason != 0 {
		rec.Reason = uint16(c.upTo(math.MaxUint16))
	}
	if has&hasBy != 0 {
		rec.By = c.ref()
		rec.ByEvent = machine.EventID(c.upTo(math.MaxUint16))
	}
	if has&hasSite != 0 {
		site = uint32(c.upTo(maxSites))
	}
	return site
}

func (c *cursor) readValues(rec *machine.Record) {
	lo, hi := c.byte(), c.byte()
	rec.NArgs, rec.NViews, rec.NCall, rec.NIdentity = lo&0xf, lo>>4, hi&0xf, hi>>4
	if rec.NArgs > machine.MaxArgs || rec.NViews > machine.MaxViews || rec.NCall > machine.MaxArgs || rec.NIdentity > machine.MaxIdentity {
		rec.NArgs, rec.NViews, rec.NCall, rec.NIdentity = 0, 0, 0, 0
		c.fail(errRange)
		return
	}
	c.words(rec.Args[:rec.NArgs])
	c.words(rec.Views[:rec.NViews])
	c.words(rec.CallArgs[:rec.NCall])
	c.words(rec.Identity[:rec.NIdentity])
}

func (c *cursor) readResult(r *machine.Result) {
	has := c.byte()
	r.Outcome = machine.Outcome(has & 0xf)
	if int(r.Outcome) >= machine.NumOutcomes {
		c.fail(errRange)
	}
	r.Accepted = has&resultAccepted != 0
	if has&resultCode != 0 {
		r.Code = int32(uint32(c.upTo(math.MaxUint32)))
	}
	if has&resultLast != 0 {
		r.Last = int32(uint32(c.upTo(math.MaxUint32)))
	}
	if has&resultValue != 0 {
		r.Value = c.uint()
	}
}
