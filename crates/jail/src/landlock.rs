//! Landlock: a second, independent "no" to files, TCP and signals, should a descriptor or a mount slip through.

use ::landlock::{
    ABI, Access, AccessFs, AccessNet, LandlockStatus, RestrictionStatus, Ruleset, RulesetAttr, RulesetError,
    RulesetStatus, Scope,
};

use crate::error::Error;

/// The newest interface whose rights are asked for. An older kernel enforces the part it knows, and its number is
/// what [`deny_all`] returns.
const NEWEST: ABI = ABI::V9;

/// Denies everything landlock can deny. Returns the interface version in force, 0 when this kernel has none.
pub(crate) fn deny_all() -> Result<u32, Error> {
    let status = restrict().map_err(Error::Landlock)?;
    match (status.landlock, status.ruleset) {
        (LandlockStatus::Available { .. }, RulesetStatus::NotEnforced) => Err(Error::LandlockNotEnforced),
        (LandlockStatus::Available { effective_abi, .. }, _) => Ok(effective_abi as u32),
        (LandlockStatus::NotEnabled | LandlockStatus::NotImplemented, _) => Ok(0),
    }
}

fn restrict() -> Result<RestrictionStatus, RulesetError> {
    Ruleset::default()
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?
        .restrict_self()
}
