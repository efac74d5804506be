// The library of the functions whose names begin with rt, beside a stand-in
// driver that lacks them.

int standin_rt_stream_query(void *stream);

__attribute__((visibility("default"))) int rtStreamQuery(void *stream) { return standin_rt_stream_query(stream); }
