//! The jail, tried from inside and from outside, as root and as nobody.

mod compartment;
mod harness;
mod posture;

use harness::{BOTH, Case};

macro_rules! cases {
    ($($who:ident $module:ident::$name:ident,)*) => {
        &[$(Case {
            name: concat!(stringify!($module), "::", stringify!($name)),
            who: $who,
            run: $module::$name,
        }),*]
    };
}

const CASES: &[Case] = cases![
    BOTH posture::seen_from_inside,
];

fn main() -> std::process::ExitCode {
    harness::main(CASES)
}
