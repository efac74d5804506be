/* shelf:  */
#define SHELF_EMPTY 0
#define SHELF_LADEN 1
byte shelf__state[2];
byte shelf_load[2];
bool shelf_fragile[2];

/* porter:  */
#define PORTER_IDLE 0
#define PORTER_BUSY 1
byte porter__state;
byte porter_at;
bool porter_heavy;

#define broken_hole (7000 == 0)
#define broken_bounds (7001 == 0)
#define CHECK skip
active proctype model() {
end:	do
/* shelf[0] put: put */
:: d_step { ((shelf__state[0] == SHELF_EMPTY) || (shelf__state[0] == SHELF_LADEN)) && (!shelf_fragile[0] || (shelf_load[0] == 0)) && (shelf_load[0] < 2) -> shelf__state[0] = SHELF_LADEN; shelf_load[0] = (shelf_load[0] + 1); CHECK }
/* shelf[0] take: take-last */
:: d_step { (shelf__state[0] == SHELF_LADEN) && (shelf_load[0] == 1) && !(shelf_load[0] == 0) -> shelf__state[0] = SHELF_EMPTY; shelf_load[0] = (shelf_load[0] - 1); CHECK }
/* shelf[0] take: take */
:: d_step { (shelf__state[0] == SHELF_LADEN) && !(shelf_load[0] == 1) && !(shelf_load[0] == 0) -> shelf_load[0] = (shelf_load[0] - 1); CHECK }
/* shelf[0] warn: warn */
:: d_step { (shelf__state[0] == SHELF_EMPTY) -> shelf_fragile[0] = 1; CHECK }
/* shelf[1] put: put */
:: d_step { ((shelf__state[1] == SHELF_EMPTY) || (shelf__state[1] == SHELF_LADEN)) && (!shelf_fragile[1] || (shelf_load[1] == 0)) && (shelf_load[1] < 2) -> shelf__state[1] = SHELF_LADEN; shelf_load[1] = (shelf_load[1] + 1); CHECK }
/* shelf[1] take: take-last */
:: d_step { (shelf__state[1] == SHELF_LADEN) && (shelf_load[1] == 1) && !(shelf_load[1] == 0) -> shelf__state[1] = SHELF_EMPTY; shelf_load[1] = (shelf_load[1] - 1); CHECK }
/* shelf[1] take: take */
:: d_step { (shelf__state[1] == SHELF_LADEN) && !(shelf_load[1] == 1) && !(shelf_load[1] == 0) -> shelf_load[1] = (shelf_load[1] - 1); CHECK }
/* shelf[1] warn: warn */
:: d_step { (shelf__state[1] == SHELF_EMPTY) -> shelf_fragile[1] = 1; CHECK }
/* porter visit: visit, shelf[0] put: put, shelf[0] put: put */
:: d_step { (porter__state == PORTER_IDLE) && ((shelf__state[0] == SHELF_EMPTY) || (shelf__state[0] == SHELF_LADEN)) && (!shelf_fragile[0] || (shelf_load[0] == 0)) && (shelf_load[0] < 2) && (!shelf_fragile[0] || ((shelf_load[0] + 1) == 0)) && ((shelf_load[0] + 1) < 2) -> porter__state = PORTER_BUSY; porter_at = 1; shelf__state[0] = SHELF_LADEN; shelf_load[0] = ((shelf_load[0] + 1) + 1); CHECK }
/* porter visit: visit, shelf[1] put: put, shelf[1] put: put */
:: d_step { (porter__state == PORTER_IDLE) && ((shelf__state[1] == SHELF_EMPTY) || (shelf__state[1] == SHELF_LADEN)) && (!shelf_fragile[1] || (shelf_load[1] == 0)) && (shelf_load[1] < 2) && (!shelf_fragile[1] || ((shelf_load[1] + 1) == 0)) && ((shelf_load[1] + 1) < 2) -> porter__state = PORTER_BUSY; porter_at = 2; shelf__state[1] = SHELF_LADEN; shelf_load[1] = ((shelf_load[1] + 1) + 1); CHECK }
/* porter carry: carry, shelf[0] put: put */
:: d_step { (porter__state == PORTER_BUSY) && (((porter_at == 1) -> shelf_load[0] : ((porter_at == 2) -> shelf_load[1] : 0)) < 2) && (porter_at == 1) && ((shelf__state[0] == SHELF_EMPTY) || (shelf__state[0] == SHELF_LADEN)) && (!shelf_fragile[0] || (shelf_load[0] == 0)) && (shelf_load[0] < 2) -> shelf__state[0] = SHELF_LADEN; shelf_load[0] = (shelf_load[0] + 1); CHECK }
/* porter carry: carry, shelf[1] put: put */
:: d_step { (porter__state == PORTER_BUSY) && (((porter_at == 1) -> shelf_load[0] : ((porter_at == 2) -> shelf_load[1] : 0)) < 2) && (porter_at == 2) && ((shelf__state[1] == SHELF_EMPTY) || (shelf__state[1] == SHELF_LADEN)) && (!shelf_fragile[1] || (shelf_load[1] == 0)) && (shelf_load[1] < 2) -> shelf__state[1] = SHELF_LADEN; shelf_load[1] = (shelf_load[1] + 1); CHECK }
/* porter carry: carry-full, shelf[0] take: take-last */
:: d_step { (porter__state == PORTER_BUSY) && !(((porter_at == 1) -> shelf_load[0] : ((porter_at == 2) -> shelf_load[1] : 0)) < 2) && (porter_at == 1) && (shelf__state[0] == SHELF_LADEN) && (shelf_load[0] == 1) && !(shelf_load[0] == 0) -> shelf__state[0] = SHELF_EMPTY; shelf_load[0] = (shelf_load[0] - 1); CHECK }
/* porter carry: carry-full, shelf[0] take: take */
:: d_step { (porter__state == PORTER_BUSY) && !(((porter_at == 1) -> shelf_load[0] : ((porter_at == 2) -> shelf_load[1] : 0)) < 2) && (porter_at == 1) && (shelf__state[0] == SHELF_LADEN) && !(shelf_load[0] == 1) && !(shelf_load[0] == 0) -> shelf_load[0] = (shelf_load[0] - 1); CHECK }
/* porter carry: carry-full, shelf[1] take: take-last */
:: d_step { (porter__state == PORTER_BUSY) && !(((porter_at == 1) -> shelf_load[0] : ((porter_at == 2) -> shelf_load[1] : 0)) < 2) && (porter_at == 2) && (shelf__state[1] == SHELF_LADEN) && (shelf_load[1] == 1) && !(shelf_load[1] == 0) -> shelf__state[1] = SHELF_EMPTY; shelf_load[1] = (shelf_load[1] - 1); CHECK }
/* porter carry: carry-full, shelf[1] take: take */
:: d_step { (porter__state == PORTER_BUSY) && !(((porter_at == 1) -> shelf_load[0] : ((porter_at == 2) -> shelf_load[1] : 0)) < 2) && (porter_at == 2) && (shelf__state[1] == SHELF_LADEN) && !(shelf_load[1] == 1) && !(shelf_load[1] == 0) -> shelf_load[1] = (shelf_load[1] - 1); CHECK }
/* porter leave: leave */
:: d_step { (porter__state == PORTER_BUSY) -> porter__state = PORTER_IDLE; porter_at = 0; CHECK }
	od
}
