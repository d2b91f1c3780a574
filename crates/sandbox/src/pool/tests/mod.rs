//! The pool over a wall of cardboard, in virtual time: seconds of load pass in no time, and to the millisecond.

mod idle;
mod line;
mod lost;
mod memory;
mod places;
mod shares;
mod strikes;
mod turns;
mod wall;
