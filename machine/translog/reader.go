package translog

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/runfence/runfence/machine"
)

// Reader reads a log from front to back, in either encoding. Its memory is
// bounded whatever it reads. A Reader is for one goroutine.
type Reader struct {
	br     *bufio.Reader
	format Format
	header *Header
	lines  *lineReader

	at     int64 // offset of what is read next
	line   int   // number of the line read last
	worlds int
	world  int    // of the last record
	seq    uint64 // of the last record
	sites  []string
	closed bool
	err    error
	long   []byte // an entry that is longer than br's buffer
}

// bufferSize holds any entry but the longest of a header.
const bufferSize = maxEntry + 1024

// NewReader reads the header. It finds the encoding out by itself.
//
// Errors: [ErrEmpty], [ErrNotALog], [*SchemaError], [*TornError],
// [*CorruptError], or that of r with the place.
func NewReader(r io.Reader) (*Reader, error) {
	rd := &Reader{br: bufio.NewReaderSize(r, bufferSize), world: -1}
	if err := rd.readHeader(); err != nil {
		return nil, err
	}
	if rd.format == JSONLines {
		rd.lines = &lineReader{names: rd.header.names}
	}
	return rd, nil
}

// Header returns what the log says about its rules. It must not be changed.
func (r *Reader) Header() *Header { return r.header }

// Format returns the log's encoding.
func (r *Reader) Format() Format { return r.format }

// Closed reports whether the [EndEntry] has been read: whether whoever wrote
// the log came to its end.
func (r *Reader) Closed() bool { return r.closed }

// Place returns the place of what is read next.
func (r *Reader) Place() Place {
	p := Place{Offset: r.at, World: max(r.world, 0), Seq: r.seq}
	if r.format == JSONLines {
		p.Line = r.line + 1
	}
	return p
}

// Next reads one entry into e, and returns io.EOF after the last. The entry is
// overwritten by the next call with it; nothing else in it is shared.
//
// Errors: [*TornError], [*CorruptError], [*NameError] (e then holds the rest of
// the record), or that of the underlying reader with the place. An error stays.
func (r *Reader) Next(e *Entry) error {
	if r.err != nil {
		return r.err
	}
	if err := r.next(e); err != nil {
		r.err = err
		return err
	}
	return nil
}

func (r *Reader) next(e *Entry) error {
	for {
		place := r.Place()
		payload, err := r.read(maxEntry)
		if err != nil {
			return err
		}
		if r.closed {
			return r.corrupt(place, fmt.Errorf("an entry after the end"))
		}
		*e = Entry{Place: place}
		if r.format == Binary {
			err = r.decodeFrame(e, payload)
		} else {
			err = r.lines.decode(e, payload)
			e.Place = place
		}
		if err == nil && e.Kind != NoEntry {
			err = r.admit(e)
		}
		if f, ok := err.(*nameFault); ok {
			return &NameError{Place: place, World: e.World, Seq: e.Record.Seq, What: f.what, Name: f.name, Hint: f.hint}
		}
		if err != nil {
			return r.corrupt(place, err)
		}
		if e.Kind != NoEntry {
			return nil
		}
	}
}

// admit checks what is the same in both encodings.
func (r *Reader) admit(e *Entry) error {
	switch e.Kind {
	case WorldEntry:
		if e.World != r.worlds || r.worlds == math.MaxInt32 {
			return fmt.Errorf("world %d opened where %d comes next", e.World, r.worlds)
		}
		r.worlds++
		return nil
	case EndEntry:
		r.closed = true
		return nil
	}
	if e.World >= r.worlds {
		return fmt.Errorf("world %d was never opened", e.World)
	}
	switch e.Kind {
	case RecordEntry:
		r.world, r.seq = e.World, e.Record.Seq
	case RepeatEntry:
		x := &e.Repeat
		if x.Length < 1 || x.Length > MaxRepeatLength || x.Count < 1 || x.Count > MaxRepeatCount {
			return fmt.Errorf("repeat of %d records %d times: want 1 to %d, 1 to %d times", x.Length, x.Count, MaxRepeatLength, MaxRepeatCount)
		}
		r.world, r.seq = e.World, x.First+x.Records()-1
	case GapEntry:
		if e.Gap.Count == 0 {
			return fmt.Errorf("a gap of no records")
		}
		r.world, r.seq = e.World, e.Gap.First+e.Gap.Count-1
	}
	return nil
}

func (r *Reader) decodeFrame(e *Entry, payload []byte) error {
	c := cursor{b: payload}
	tag := c.byte()
	if c.err != nil {
		return c.err
	}
	switch tag {
	case tagText:
		return decodeText(e, payload[1:])
	case tagRecord:
		e.Kind = RecordEntry
		e.World = int(c.upTo(math.MaxInt32))
		rec := &e.Record
		rec.Seq = c.uint()
		rec.Time = int64(c.fixed())
		site := c.readBody(rec)
		if int(site) > len(r.sites) {
			return fmt.Errorf("site %d was never named", site)
		}
		if site > 0 {
			e.Site = r.sites[site-1]
		}
	case tagRepeat:
		e.Kind = RepeatEntry
		e.World = int(c.upTo(math.MaxInt32))
		e.Repeat.First = c.uint()
		e.Repeat.Time = int64(c.fixed())
		e.Repeat.Length = int(c.upTo(MaxRepeatLength))
		e.Repeat.Count = int(c.upTo(MaxRepeatCount))
	case tagSite:
		if len(c.b) == 0 || len(c.b) > maxSite || len(r.sites) == maxSites {
			return fmt.Errorf("a site of %d bytes after %d sites: at most %d and %d", len(c.b), len(r.sites), maxSite, maxSites)
		}
		r.sites = append(r.sites, string(c.b))
		return checkText(r.sites[len(r.sites)-1])
	default:
		return fmt.Errorf("frame of unknown tag %d", tag)
	}
	return c.end()
}

// readHeader reads the first lines, whatever the encoding.
func (r *Reader) readHeader() error {
	b, err := r.br.Peek(1)
	switch {
	case len(b) == 0 && err == io.EOF:
		return ErrEmpty
	case len(b) == 0:
		return r.failed(err)
	case b[0] == binaryMagic[0]:
		if err := r.readPreamble(); err != nil {
			return err
		}
	case b[0] == '{':
		r.format = JSONLines
		if err := r.checkPrefix(jsonPrefix); err != nil {
			return err
		}
	default:
		return r.notALog()
	}
	h, n, err := r.readHead()
	if err != nil {
		return err
	}
	rows := 0
	for range n {
		place := r.Place()
		b, err := r.read(maxHeaderLine)
		if err != nil {
			return r.midHeader(place, err)
		}
		if len(b) > 0 && r.format == Binary {
			if b[0] != tagText {
				return r.corrupt(place, fmt.Errorf("frame of tag %d in the header", b[0]))
			}
			b = b[1:]
		}
		var m struct {
			machineLine
			CRC string `json:"crc"`
		}
		if err := unmarshal(b, &m); err != nil {
			return r.corrupt(place, err)
		}
		if m.Kind != kindMachine {
			return r.corrupt(place, fmt.Errorf("a line of kind %q in the header", m.Kind))
		}
		rows += len(m.Rows)
		if r.at > maxHeader+maxHeaderLine || rows > maxRows {
			return r.corrupt(place, fmt.Errorf("header of more than %d bytes or %d rows: %w", maxHeader, maxRows, ErrTooLong))
		}
		h.Machines = append(h.Machines, m.MachineTable)
	}
	if err := h.compile(); err != nil {
		return r.corrupt(r.Place(), fmt.Errorf("header: %w", err))
	}
	r.header = h
	return nil
}

// readHead reads the first line. Another schema is told before anything else
// of it is believed.
func (r *Reader) readHead() (*Header, int, error) {
	place := r.Place()
	var head struct {
		Magic    string `json:"runfence"`
		Machines int    `json:"machines"`
		Header
		CRC string `json:"crc"`
	}
	b, err := r.readRaw(maxHeaderLine)
	if err != nil {
		return nil, 0, r.midHeader(place, err)
	}
	text := b.payload
	if r.format == Binary {
		if len(text) == 0 || text[0] != tagText {
			return nil, 0, r.corrupt(place, fmt.Errorf("the first frame is not a header"))
		}
		text = text[1:]
	}
	var only struct {
		Schema *uint64 `json:"schema"`
	}
	if json.Unmarshal(text, &only) == nil && only.Schema != nil && *only.Schema != Schema {
		return nil, 0, &SchemaError{Version: *only.Schema}
	}
	if !b.sound {
		return nil, 0, r.corrupt(place, ErrChecksum)
	}
	if err := unmarshal(text, &head); err != nil {
		return nil, 0, r.corrupt(place, err)
	}
	if head.Magic != jsonMagic || only.Schema == nil {
		return nil, 0, r.notALog()
	}
	if head.Machines < 1 || head.Machines > maxMachines {
		return nil, 0, r.corrupt(place, fmt.Errorf("%d machines: want 1 to %d", head.Machines, maxMachines))
	}
	return &head.Header, head.Machines, nil
}

// midHeader turns a clean end inside the header into a torn one.
func (r *Reader) midHeader(place Place, err error) error {
	if err == io.EOF {
		return &TornError{Place: place}
	}
	return err
}

func unmarshal(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("something after the entry")
	}
	return nil
}

func (r *Reader) readPreamble() error {
	if err := r.checkPrefix(binaryMagic); err != nil {
		return err
	}
	b, err := r.br.Peek(preambleSize)
	if len(b) < preambleSize {
		return r.cut(b, err)
	}
	if v := binary.LittleEndian.Uint32(b[len(binaryMagic):]); v != Schema {
		return &SchemaError{Version: uint64(v)}
	}
	r.skip(preambleSize)
	return nil
}

// checkPrefix checks how the log begins. It may be torn even there.
func (r *Reader) checkPrefix(want string) error {
	b, err := r.br.Peek(len(want))
	if !bytes.HasPrefix([]byte(want), b) {
		return r.notALog()
	}
	if len(b) < len(want) {
		return r.cut(b, err)
	}
	return nil
}

func (r *Reader) notALog() error {
	b, _ := r.br.Peek(16)
	return fmt.Errorf("%w: it begins with %q", ErrNotALog, b)
}

// raw is an entry as it stands in the log.
type raw struct {
	payload []byte // valid until the next read
	sound   bool   // its checksum holds
}

// read reads one entry whose checksum holds.
func (r *Reader) read(most int) ([]byte, error) {
	place := r.Place()
	b, err := r.readRaw(most)
	if err == nil && !b.sound {
		err = r.corrupt(place, ErrChecksum)
	}
	return b.payload, err
}

func (r *Reader) readRaw(most int) (raw, error) {
	if r.format == Binary {
		return r.readFrame(most)
	}
	return r.readLine(most)
}

func (r *Reader) readFrame(most int) (raw, error) {
	head, err := r.br.Peek(frameHead)
	if len(head) == 0 && err == io.EOF {
		return raw{}, io.EOF
	}
	if len(head) < frameHead {
		return raw{}, r.cut(head, err)
	}
	n, ok := frameLength(head)
	if !ok {
		if binary.LittleEndian.Uint32(head) == 0 {
			return raw{}, r.zeros(fmt.Errorf("zeros in the middle of the log"))
		}
		return raw{}, r.corrupt(r.Place(), fmt.Errorf("no frame begins here: %w", ErrChecksum))
	}
	if n > most {
		return raw{}, r.corrupt(r.Place(), fmt.Errorf("frame of %d bytes, at most %d: %w", n, most, ErrTooLong))
	}
	b, err := r.span(frameHead + n + frameTail)
	if err != nil {
		return raw{}, err
	}
	sound := binary.LittleEndian.Uint32(b[frameHead+n:]) == checksum(b[:frameHead+n])
	r.at += int64(len(b))
	return raw{payload: b[frameHead : frameHead+n], sound: sound}, nil
}

// span returns the next n bytes, valid until the next read.
func (r *Reader) span(n int) ([]byte, error) {
	if n <= bufferSize {
		b, err := r.br.Peek(n)
		if len(b) < n {
			return nil, r.cut(b, err)
		}
		_, _ = r.br.Discard(n) // what was peeked can be discarded
		return b, nil
	}
	if cap(r.long) < n {
		r.long = make([]byte, n)
	}
	b := r.long[:n]
	got, err := io.ReadFull(r.br, b)
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	if err != nil {
		return nil, r.cut(b[:got], err)
	}
	return b, nil
}

// slice returns the bytes up to and with the next end of a line, valid until
// the next read. It gives up once there are more than most.
func (r *Reader) slice(most int) ([]byte, error) {
	b, err := r.br.ReadSlice('\n')
	if err != bufio.ErrBufferFull {
		return b, err
	}
	r.long = r.long[:0]
	for err == bufio.ErrBufferFull && len(r.long) <= most {
		r.long = append(r.long, b...)
		b, err = r.br.ReadSlice('\n')
	}
	r.long = append(r.long, b...)
	return r.long, err
}

func (r *Reader) readLine(most int) (raw, error) {
	b, err := r.slice(most)
	switch {
	case len(b) == 0 && err == io.EOF:
		return raw{}, io.EOF
	case err == nil:
		b = b[:len(b)-1]
	case err == bufio.ErrBufferFull:
		return raw{}, r.corrupt(r.Place(), fmt.Errorf("line of more than %d bytes: %w", most, ErrTooLong))
	case err != io.EOF:
		return raw{}, r.failed(err)
	case !checkLine(b):
		return raw{}, r.cut(b, err)
	default:
		// Only the line's end is missing.
		r.at--
	}
	if len(b) > most {
		return raw{}, r.corrupt(r.Place(), fmt.Errorf("line of %d bytes, at most %d: %w", len(b), most, ErrTooLong))
	}
	r.at += int64(len(b)) + 1
	r.line++
	return raw{payload: b, sound: checkLine(b)}, nil
}

func (r *Reader) skip(n int) {
	_, _ = r.br.Discard(n) // what was peeked can be discarded
	r.at += int64(n)
}

// cut explains why there is less than an entry.
func (r *Reader) cut(have []byte, err error) error {
	if err != io.EOF {
		return r.failed(err)
	}
	if len(bytes.Trim(have, "\x00")) == 0 {
		return &TornError{Place: r.Place(), Tail: int64(len(have)), Zeros: true}
	}
	return &TornError{Place: r.Place(), Tail: int64(len(have))}
}

// zeros tells a tail of zeros from zeros that something follows.
func (r *Reader) zeros(otherwise error) error {
	place := r.Place()
	var n int64
	for {
		b, err := r.br.Peek(1)
		if len(b) == 0 {
			if err != io.EOF {
				return r.failed(err)
			}
			return &TornError{Place: place, Tail: n, Zeros: true}
		}
		b, _ = r.br.Peek(r.br.Buffered())
		for _, c := range b {
			if c != 0 {
				return r.corrupt(place, otherwise)
			}
		}
		n += int64(len(b))
		r.skip(len(b))
	}
}

func (r *Reader) corrupt(p Place, err error) error { return &CorruptError{Place: p, Err: err} }

func (r *Reader) failed(err error) error {
	return fmt.Errorf("reading the log: %v: %w", r.Place(), err)
}

// textEntry is an entry that encoding/json reads.
type textEntry struct {
	Kind   string `json:"kind"`
	Number int    `json:"world"`
	World
	First   uint64 `json:"seq"`
	Count   uint64 `json:"count"`
	Records uint64 `json:"records"`
	Dropped uint64 `json:"dropped"`
	CRC     string `json:"crc"`
}

// decodeText reads an entry that is rare.
func decodeText(e *Entry, b []byte) error {
	var t textEntry
	if err := unmarshal(b, &t); err != nil {
		return err
	}
	if t.Number < 0 || t.Number > math.MaxInt32 {
		return fmt.Errorf("world %d", t.Number)
	}
	e.World = t.Number
	switch t.Kind {
	case WorldEntry.String():
		e.Kind, e.Opened = WorldEntry, t.World
	case GapEntry.String():
		e.Kind, e.Gap = GapEntry, Gap{First: t.First, Count: t.Count}
	case EndEntry.String():
		e.Kind, e.End = EndEntry, End{Records: t.Records, Dropped: t.Dropped}
	default:
		return fmt.Errorf("%s", machine.Unknown("kind of entry", t.Kind, entryKinds[1:]))
	}
	return nil
}
