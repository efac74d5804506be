package explore

// SetBatch makes batches of n states, and calls done after each.
func SetBatch(o *Options, n int, done func()) { o.batch, o.batchDone = n, done }
