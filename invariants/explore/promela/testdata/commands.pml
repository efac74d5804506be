/* pump:  */
#define PUMP_OFF 0
#define PUMP_PRIMED 1
#define PUMP_ON 2
#define PUMP_DEAD 3
#define PUMP_FLYING_START 1
#define PUMP_NEXT_RUN 2
byte pump__state[2];
byte pump__flight[2];
byte pump_level[2];
bool pump_asked[2];
int pump_fault[2];
byte pump__start_level[2];
byte pump__waits[2];
byte pump__waits_run_level[2];

#define broken_hole (7000 == 0)
#define broken_bounds (7001 == 0)
#define CHECK skip
int _temp[1];
active proctype model() {
end:	do
/* pump[0] start: start */
:: d_step { (pump__state[0] == PUMP_OFF) && (pump__flight[0] == 0) -> pump__flight[0] = PUMP_FLYING_START; pump__start_level[0] = 1; pump_asked[0] = 0; CHECK }
/* pump[0] start: start */
:: d_step { (pump__state[0] == PUMP_OFF) && (pump__flight[0] == 0) -> pump__flight[0] = PUMP_FLYING_START; pump__start_level[0] = 2; pump_asked[0] = 0; CHECK }
/* pump[0] stop: stop-starting */
:: d_step { (pump__state[0] == PUMP_OFF) && (pump__flight[0] == PUMP_FLYING_START) -> pump_asked[0] = 1; CHECK }
/* pump[0] stop: stop */
:: d_step { (pump__state[0] == PUMP_ON) && (pump__flight[0] == 0) -> pump__state[0] = PUMP_OFF; pump_asked[0] = 0; pump_level[0] = 0; CHECK }
/* pump[0]▸start: ok */
:: d_step { (pump__flight[0] == PUMP_FLYING_START) -> pump__flight[0] = 0; pump__start_level[0] = 0; pump_level[0] = 0; CHECK }
/* pump[0]▸start: ok */
:: d_step { (pump__flight[0] == PUMP_FLYING_START) && !(pump__waits[0] == 0) -> assert(broken_bounds) }
/* pump[0]▸start: ok */
:: d_step { (pump__flight[0] == PUMP_FLYING_START) && (pump__waits[0] == 0) -> _temp[0] = pump__start_level[0]; pump__flight[0] = 0; pump__start_level[0] = 0; pump__state[0] = PUMP_PRIMED; pump__waits[0] = PUMP_NEXT_RUN; pump__waits_run_level[0] = _temp[0]; _temp[0] = 0; CHECK }
/* pump[0]▸start: refused */
:: d_step { (pump__flight[0] == PUMP_FLYING_START) -> pump__flight[0] = 0; pump__start_level[0] = 0; CHECK }
/* pump[0]▸start: refused */
:: d_step { (pump__flight[0] == PUMP_FLYING_START) -> pump__flight[0] = 0; pump__start_level[0] = 0; CHECK }
/* pump[0]▸start: failed */
:: d_step { (pump__flight[0] == PUMP_FLYING_START) -> pump__flight[0] = 0; pump__start_level[0] = 0; pump__state[0] = PUMP_DEAD; pump_fault[0] = 7; CHECK }
/* pump[0]▸start: failed */
:: d_step { (pump__flight[0] == PUMP_FLYING_START) -> pump__flight[0] = 0; pump__start_level[0] = 0; pump__state[0] = PUMP_DEAD; pump_fault[0] = 7; CHECK }
/* pump[0]▸start: panicked */
:: d_step { (pump__flight[0] == PUMP_FLYING_START) -> pump__flight[0] = 0; pump__start_level[0] = 0; CHECK }
/* pump[0]▸start: panicked */
:: d_step { (pump__flight[0] == PUMP_FLYING_START) -> pump__flight[0] = 0; pump__start_level[0] = 0; CHECK }
/* pump[0]▸start: timedout */
:: d_step { (pump__flight[0] == PUMP_FLYING_START) -> pump__flight[0] = 0; pump__start_level[0] = 0; CHECK }
/* pump[0]▸start: timedout */
:: d_step { (pump__flight[0] == PUMP_FLYING_START) -> pump__flight[0] = 0; pump__start_level[0] = 0; CHECK }
/* pump[0] run: run */
:: d_step { (pump__waits[0] == PUMP_NEXT_RUN) && (pump__flight[0] == 0) && (pump__state[0] == PUMP_PRIMED) && !pump_asked[0] && (pump__waits_run_level[0] < 3) -> _temp[0] = pump__waits_run_level[0]; pump__state[0] = PUMP_ON; pump__waits[0] = 0; pump__waits_run_level[0] = 0; pump_level[0] = _temp[0]; _temp[0] = 0; CHECK }
/* pump[0] run: refused */
:: d_step { (pump__waits[0] == PUMP_NEXT_RUN) && (pump__flight[0] == 0) && !((pump__state[0] == PUMP_PRIMED) && !pump_asked[0] && (pump__waits_run_level[0] < 3)) -> pump__waits[0] = 0; pump__waits_run_level[0] = 0; CHECK }
/* pump[0]: dropped */
:: d_step { (pump__state[0] == PUMP_DEAD) -> pump__flight[0] = 0; pump__start_level[0] = 0; pump__state[0] = 0; pump__waits[0] = 0; pump__waits_run_level[0] = 0; pump_asked[0] = 0; pump_fault[0] = 0; pump_level[0] = 0; CHECK }
/* pump[1] start: start */
:: d_step { (pump__state[1] == PUMP_OFF) && (pump__flight[1] == 0) -> pump__flight[1] = PUMP_FLYING_START; pump__start_level[1] = 1; pump_asked[1] = 0; CHECK }
/* pump[1] start: start */
:: d_step { (pump__state[1] == PUMP_OFF) && (pump__flight[1] == 0) -> pump__flight[1] = PUMP_FLYING_START; pump__start_level[1] = 2; pump_asked[1] = 0; CHECK }
/* pump[1] stop: stop-starting */
:: d_step { (pump__state[1] == PUMP_OFF) && (pump__flight[1] == PUMP_FLYING_START) -> pump_asked[1] = 1; CHECK }
/* pump[1] stop: stop */
:: d_step { (pump__state[1] == PUMP_ON) && (pump__flight[1] == 0) -> pump__state[1] = PUMP_OFF; pump_asked[1] = 0; pump_level[1] = 0; CHECK }
/* pump[1]▸start: ok */
:: d_step { (pump__flight[1] == PUMP_FLYING_START) -> pump__flight[1] = 0; pump__start_level[1] = 0; pump_level[1] = 0; CHECK }
/* pump[1]▸start: ok */
:: d_step { (pump__flight[1] == PUMP_FLYING_START) && !(pump__waits[1] == 0) -> assert(broken_bounds) }
/* pump[1]▸start: ok */
:: d_step { (pump__flight[1] == PUMP_FLYING_START) && (pump__waits[1] == 0) -> _temp[0] = pump__start_level[1]; pump__flight[1] = 0; pump__start_level[1] = 0; pump__state[1] = PUMP_PRIMED; pump__waits[1] = PUMP_NEXT_RUN; pump__waits_run_level[1] = _temp[0]; _temp[0] = 0; CHECK }
/* pump[1]▸start: refused */
:: d_step { (pump__flight[1] == PUMP_FLYING_START) -> pump__flight[1] = 0; pump__start_level[1] = 0; CHECK }
/* pump[1]▸start: refused */
:: d_step { (pump__flight[1] == PUMP_FLYING_START) -> pump__flight[1] = 0; pump__start_level[1] = 0; CHECK }
/* pump[1]▸start: failed */
:: d_step { (pump__flight[1] == PUMP_FLYING_START) -> pump__flight[1] = 0; pump__start_level[1] = 0; pump__state[1] = PUMP_DEAD; pump_fault[1] = 7; CHECK }
/* pump[1]▸start: failed */
:: d_step { (pump__flight[1] == PUMP_FLYING_START) -> pump__flight[1] = 0; pump__start_level[1] = 0; pump__state[1] = PUMP_DEAD; pump_fault[1] = 7; CHECK }
/* pump[1]▸start: panicked */
:: d_step { (pump__flight[1] == PUMP_FLYING_START) -> pump__flight[1] = 0; pump__start_level[1] = 0; CHECK }
/* pump[1]▸start: panicked */
:: d_step { (pump__flight[1] == PUMP_FLYING_START) -> pump__flight[1] = 0; pump__start_level[1] = 0; CHECK }
/* pump[1]▸start: timedout */
:: d_step { (pump__flight[1] == PUMP_FLYING_START) -> pump__flight[1] = 0; pump__start_level[1] = 0; CHECK }
/* pump[1]▸start: timedout */
:: d_step { (pump__flight[1] == PUMP_FLYING_START) -> pump__flight[1] = 0; pump__start_level[1] = 0; CHECK }
/* pump[1] run: run */
:: d_step { (pump__waits[1] == PUMP_NEXT_RUN) && (pump__flight[1] == 0) && (pump__state[1] == PUMP_PRIMED) && !pump_asked[1] && (pump__waits_run_level[1] < 3) -> _temp[0] = pump__waits_run_level[1]; pump__state[1] = PUMP_ON; pump__waits[1] = 0; pump__waits_run_level[1] = 0; pump_level[1] = _temp[0]; _temp[0] = 0; CHECK }
/* pump[1] run: refused */
:: d_step { (pump__waits[1] == PUMP_NEXT_RUN) && (pump__flight[1] == 0) && !((pump__state[1] == PUMP_PRIMED) && !pump_asked[1] && (pump__waits_run_level[1] < 3)) -> pump__waits[1] = 0; pump__waits_run_level[1] = 0; CHECK }
/* pump[1]: dropped */
:: d_step { (pump__state[1] == PUMP_DEAD) -> pump__flight[1] = 0; pump__start_level[1] = 0; pump__state[1] = 0; pump__waits[1] = 0; pump__waits_run_level[1] = 0; pump_asked[1] = 0; pump_fault[1] = 0; pump_level[1] = 0; CHECK }
	od
}
