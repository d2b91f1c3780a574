//! What happens by chance, and again with the same seed.

/// Numbers without a pattern that matters here (xorshift).
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Chance {
        Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Less than `end`, which is not zero.
    pub fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 16) % end
    }
}
