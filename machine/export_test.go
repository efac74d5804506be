package machine

// Words returns the whole state of a world but for its sequence number, for
// tests that assert that nothing changed.
func (w *World) Words() []uint64 {
	out := append([]uint64(nil), w.words[:w.entry(w.Queued())]...)
	return append(out, w.words[w.entry(w.queueCap+1):]...)
}
