package translog

import "github.com/runfence/runfence/machine"

// EntryKind says what an [Entry] is.
type EntryKind uint8

// The kinds of entries.
const (
	// NoEntry is the zero value.
	NoEntry EntryKind = iota
	// WorldEntry opens a world. Its records follow, among those of others.
	WorldEntry
	// RecordEntry is one record of a world.
	RecordEntry
	// RepeatEntry stands for records that repeat the ones before it.
	RepeatEntry
	// GapEntry stands for records that were lost.
	GapEntry
	// EndEntry is the last entry of a log that was closed.
	EndEntry
)

var entryKinds = [...]string{"none", "world", "record", "repeat", "gap", "end"}

// String names the kind.
func (k EntryKind) String() string {
	if int(k) < len(entryKinds) {
		return entryKinds[k]
	}
	return "unknown"
}

// Entry is one entry of a log. Which of its parts count depends on its Kind.
type Entry struct {
	Kind EntryKind
	// World is the number of the world: 0 for the first that the log opens, then 1, …
	World int
	// Opened describes the world, in a WorldEntry.
	Opened World
	// Record has a Site of 0; Site says where it was instead: "file:line", or
	// empty if that is not known.
	Record machine.Record
	Site   string
	Repeat Repeat
	Gap    Gap
	End    End
	// Place is where the entry is in the log.
	Place Place
}

// World is what a log says of a world when it opens it: what
// [machine.Config] must say for a replay.
type World struct {
	Name  string         `json:"name"`
	Pools map[string]int `json:"pools,omitempty"`
	// Queue is the size of the queue, as in [machine.Config]: 0 is the default.
	Queue int `json:"queue,omitempty"`
}

// Repeat says that the last Length records of the world, those of one host
// operation, come again Count times. Sequence numbers go on without a gap;
// parents move along with them. Of the times only the last is known.
type Repeat struct {
	// First is the Seq of the first record that the entry stands for.
	First         uint64
	Length, Count int
	Time          int64
}

// Limits of a [Repeat].
const (
	// MaxRepeatLength bounds Repeat.Length.
	MaxRepeatLength = 32
	// MaxRepeatCount bounds Repeat.Count: how many operations at most wait in
	// memory to be written as one entry, and how much work one entry of a
	// hostile log can make.
	MaxRepeatCount = 4096
)

// Records returns how many records the entry stands for.
func (r Repeat) Records() uint64 { return uint64(r.Length) * uint64(r.Count) }

// Gap says that Count records of the world, from First on, are lost: the sink
// failed for longer than the writer's memory lasted.
type Gap struct {
	First, Count uint64
}

// End says what the writer wrote of all worlds.
type End struct {
	// Records counts records, those that repeats stand for included.
	Records uint64
	// Dropped counts those that gaps stand for.
	Dropped uint64
}
