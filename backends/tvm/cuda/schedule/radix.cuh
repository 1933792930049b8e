// Stable radix sorts of rows of keys with their places, by digits of eight bits, the lowest first.
// Key, Place, LENGTH, CHUNKS and PASSES are defined in front of it.
constexpr int THREADS = 256, WARPS = 8, ROUNDS = 8, DIGITS = 256, TILE = THREADS * ROUNDS;

__device__ static unsigned digit_of(Key key, int pass) { return (unsigned)(key >> 8 * pass) & 255u; }

// radix_moves: what radix_rows and radix_move call.
// The sum of what the threads before this one have.
__device__ static unsigned sum_before(unsigned mine, unsigned* words) {
  unsigned lane = threadIdx.x & 31, warp = threadIdx.x >> 5, sum = mine;
  for (unsigned d = 1; d < 32; d *= 2) {
    unsigned other = __shfl_up_sync(~0u, sum, d);
    if (lane >= d) sum += other;
  }
  if (lane == 31) words[warp] = sum;
  __syncthreads();
  for (unsigned w = 0; w < warp; w++) sum += words[w];
  return sum - mine;
}

// Moves a tile's elements to where `base` says for their digits, and moves `base` on. A warp has
// ROUNDS times 32 neighbours; a lane's rank among its digit's is counted by ballots.
__device__ static void move_tile(const Key* keys, const Place* places, Key* to_keys, Place* to_places,
                                 int begin, int pass, unsigned* counts, unsigned* base) {
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  for (int i = threadIdx.x; i < WARPS * DIGITS; i += THREADS) counts[i] = 0;
  __syncthreads();
  Key own[ROUNDS];
  unsigned rank[ROUNDS];
#pragma unroll
  for (int r = 0; r < ROUNDS; r++) {
    int at = begin + (warp * ROUNDS + r) * 32 + lane;
    bool here = at < LENGTH;
    own[r] = here ? keys[at] : 0;
    unsigned digit = digit_of(own[r], pass), peers = __ballot_sync(~0u, here);
    for (int b = 0; b < 8; b++) {
      unsigned set = __ballot_sync(~0u, digit >> b & 1);
      peers &= digit >> b & 1 ? set : ~set;
    }
    unsigned lower = peers & ((1u << lane) - 1), before = 0;
    if (here) before = counts[warp * DIGITS + digit];
    rank[r] = before + __popc(lower);
    __syncwarp();
    if (here && !lower) counts[warp * DIGITS + digit] = before + __popc(peers);
    __syncwarp();
  }
  __syncthreads();
  unsigned sum = base[threadIdx.x];
  for (int w = 0; w < WARPS; w++) {
    unsigned count = counts[w * DIGITS + threadIdx.x];
    counts[w * DIGITS + threadIdx.x] = sum;
    sum += count;
  }
  base[threadIdx.x] = sum;
  __syncthreads();
#pragma unroll
  for (int r = 0; r < ROUNDS; r++) {
    int at = begin + (warp * ROUNDS + r) * 32 + lane;
    if (at >= LENGTH) continue;
    unsigned to = counts[warp * DIGITS + digit_of(own[r], pass)] + rank[r];
    to_keys[to] = own[r];
    to_places[to] = places[at];
  }
}
// radix_rows: a block for each row, all passes; an odd number of them ends in the second arrays.
__global__ void __launch_bounds__(256) radix_rows(Key* keys, Place* places, Key* other_keys, Place* other_places) {
  __shared__ unsigned counts[WARPS * DIGITS];
  __shared__ unsigned base[DIGITS];
  __shared__ unsigned words[WARPS];
  Key* from_keys = keys + (size_t)blockIdx.x * LENGTH;
  Key* to_keys = other_keys + (size_t)blockIdx.x * LENGTH;
  Place* from = places + (size_t)blockIdx.x * LENGTH;
  Place* to = other_places + (size_t)blockIdx.x * LENGTH;
  for (int pass = 0; pass < PASSES; pass++) {
    base[threadIdx.x] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < LENGTH; i += THREADS) atomicAdd(&base[digit_of(from_keys[i], pass)], 1u);
    __syncthreads();
    base[threadIdx.x] = sum_before(base[threadIdx.x], words);
    for (int begin = 0; begin < LENGTH; begin += TILE) {
      if (begin) __syncthreads();
      move_tile(from_keys, from, to_keys, to, begin, pass, counts, base);
    }
    Key* k = from_keys;
    from_keys = to_keys, to_keys = k;
    Place* p = from;
    from = to, to = p;
  }
}
// radix_count: a block for each tile counts its digits.
__global__ void __launch_bounds__(256) radix_count(const Key* keys, const int* pass, unsigned* counts) {
  __shared__ unsigned own[DIGITS];
  int row = blockIdx.x / CHUNKS, chunk = blockIdx.x % CHUNKS, end = (chunk + 1) * TILE;
  if (end > LENGTH) end = LENGTH;
  own[threadIdx.x] = 0;
  __syncthreads();
  for (int i = chunk * TILE + threadIdx.x; i < end; i += THREADS)
    atomicAdd(&own[digit_of(keys[(size_t)row * LENGTH + i], *pass)], 1u);
  __syncthreads();
  counts[((size_t)row * DIGITS + threadIdx.x) * CHUNKS + chunk] = own[threadIdx.x];
}
// radix_sums: a warp for each digit sums its counts over the tiles before, and counts the pass.
__global__ void __launch_bounds__(128) radix_sums(unsigned* counts, unsigned* totals, int* pass) {
  unsigned lane = threadIdx.x & 31, carry = 0;
  size_t digit = (size_t)blockIdx.x * 4 + (threadIdx.x >> 5);
  for (unsigned first = 0; first < CHUNKS; first += 32) {
    unsigned at = first + lane, mine = 0;
    if (at < CHUNKS) mine = counts[digit * CHUNKS + at];
    unsigned sum = mine;
    for (unsigned d = 1; d < 32; d *= 2) {
      unsigned other = __shfl_up_sync(~0u, sum, d);
      if (lane >= d) sum += other;
    }
    if (at < CHUNKS) counts[digit * CHUNKS + at] = carry + sum - mine;
    carry += __shfl_sync(~0u, sum, 31);
  }
  if (lane == 0) totals[digit] = carry;
  if (blockIdx.x == 0 && threadIdx.x == 0) *pass += 1;
}
// radix_move: a block for each tile moves its elements.
__global__ void __launch_bounds__(256) radix_move(const Key* keys, const Place* places, Key* to_keys, Place* to_places,
                                                  const unsigned* sums, const unsigned* totals, const int* pass) {
  __shared__ unsigned counts[WARPS * DIGITS];
  __shared__ unsigned base[DIGITS];
  __shared__ unsigned words[WARPS];
  int row = blockIdx.x / CHUNKS, chunk = blockIdx.x % CHUNKS;
  size_t digit = (size_t)row * DIGITS + threadIdx.x, first = (size_t)row * LENGTH;
  base[threadIdx.x] = sum_before(totals[digit], words) + sums[digit * CHUNKS + chunk];
  move_tile(keys + first, places + first, to_keys + first, to_places + first, chunk * TILE, *pass - 1, counts, base);
}
