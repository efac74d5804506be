/* box: Counts, and passes values on. */
#define BOX_SHUT 0
#define BOX_WIDE_OPEN 1
#define BOX_GONE 2
#define BOX_LID_DOWN 0
#define BOX_LID_UP 1
byte box__state[2];
byte box_a[2];
byte box_b[2];
byte box_c[2];
byte box_owner[2];
byte box_lid[2];
bool box_sealed[2];

byte _fresh_who = 0; /* how many identities of the sort were minted */
#define broken_hole (7000 == 0)
#define broken_bounds (7001 == 0)
#define CHECK skip
int _temp[1];
active proctype model() {
end:	do
/* box[0] open: open */
:: d_step { (_fresh_who < 3) && (box__state[0] == BOX_SHUT) && !((box__state[1] == BOX_WIDE_OPEN) && (box_owner[1] == box_owner[0])) && (box_a[0] < 2) -> _temp[0] = (_fresh_who + 1); _fresh_who = (_fresh_who + 1); box__state[0] = BOX_WIDE_OPEN; box_a[0] = (box_a[0] + 1); box_lid[0] = BOX_LID_UP; box_owner[0] = _temp[0]; _temp[0] = 0; CHECK }
/* box[0] turn: turn */
:: d_step { (box__state[0] == BOX_WIDE_OPEN) && (box_a[0] < 2) && (box_a[0] < 3) && (box_b[0] < 3) && (box_b[0] < 2) -> _temp[0] = box_a[0]; box_a[0] = box_b[0]; box_b[0] = (box_b[0] + 1); box_c[0] = _temp[0]; _temp[0] = 0; CHECK }
/* box[0] turn: turn-back */
:: d_step { (box__state[0] == BOX_WIDE_OPEN) && !(box_a[0] < 2) -> box__state[0] = BOX_SHUT; box_a[0] = 0; box_b[0] = 0; box_c[0] = 0; box_owner[0] = 0; CHECK }
/* box[0] seal: seal */
:: d_step { ((box__state[0] == BOX_SHUT) || (box__state[0] == BOX_WIDE_OPEN)) && (((((box_sealed[0] -> 1 : 0) + 0) + (box_sealed[1] -> 1 : 0)) == 0) && !(((box__state[0] == BOX_SHUT) -> 1 : ((box__state[1] == BOX_SHUT) -> 2 : 0)) == 1)) -> box_sealed[0] = 1; CHECK }
/* box[0] smash: smash */
:: d_step { ((box__state[0] == BOX_SHUT) || (box__state[0] == BOX_WIDE_OPEN)) && ((box_lid[0] == BOX_LID_UP) && !box_sealed[0]) -> box__state[0] = BOX_GONE; CHECK }
/* box[0]: dropped */
:: d_step { (box__state[0] == BOX_GONE) -> box__state[0] = 0; box_a[0] = 0; box_b[0] = 0; box_c[0] = 0; box_lid[0] = 0; box_owner[0] = 0; box_sealed[0] = 0; CHECK }
/* box[1] open: open */
:: d_step { (_fresh_who < 3) && (box__state[1] == BOX_SHUT) && !((box__state[0] == BOX_WIDE_OPEN) && (box_owner[0] == box_owner[1])) && (box_a[1] < 2) -> _temp[0] = (_fresh_who + 1); _fresh_who = (_fresh_who + 1); box__state[1] = BOX_WIDE_OPEN; box_a[1] = (box_a[1] + 1); box_lid[1] = BOX_LID_UP; box_owner[1] = _temp[0]; _temp[0] = 0; CHECK }
/* box[1] turn: turn */
:: d_step { (box__state[1] == BOX_WIDE_OPEN) && (box_a[1] < 2) && (box_a[1] < 3) && (box_b[1] < 3) && (box_b[1] < 2) -> _temp[0] = box_a[1]; box_a[1] = box_b[1]; box_b[1] = (box_b[1] + 1); box_c[1] = _temp[0]; _temp[0] = 0; CHECK }
/* box[1] turn: turn-back */
:: d_step { (box__state[1] == BOX_WIDE_OPEN) && !(box_a[1] < 2) -> box__state[1] = BOX_SHUT; box_a[1] = 0; box_b[1] = 0; box_c[1] = 0; box_owner[1] = 0; CHECK }
/* box[1] seal: seal */
:: d_step { ((box__state[1] == BOX_SHUT) || (box__state[1] == BOX_WIDE_OPEN)) && (((((box_sealed[0] -> 1 : 0) + 0) + (box_sealed[1] -> 1 : 0)) == 0) && !(((box__state[0] == BOX_SHUT) -> 1 : ((box__state[1] == BOX_SHUT) -> 2 : 0)) == 2)) -> box_sealed[1] = 1; CHECK }
/* box[1] smash: smash */
:: d_step { ((box__state[1] == BOX_SHUT) || (box__state[1] == BOX_WIDE_OPEN)) && ((box_lid[1] == BOX_LID_UP) && !box_sealed[1]) -> box__state[1] = BOX_GONE; CHECK }
/* box[1]: dropped */
:: d_step { (box__state[1] == BOX_GONE) -> box__state[1] = 0; box_a[1] = 0; box_b[1] = 0; box_c[1] = 0; box_lid[1] = 0; box_owner[1] = 0; box_sealed[1] = 0; CHECK }
	od
}
