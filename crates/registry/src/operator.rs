//! The first operator's key, which a new data directory comes with.

use crate::database::Database;
use crate::keys::{self, Owner};
use crate::{Actor, ChangeEvent, NewKey, OpenError, Quota, RegistryError, Role, Scope, Token, files, outbox};
use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Makes the key if there was never one. The file comes first: a host that dies before the key is in the database takes
/// the token from the file when it starts again. Who wants a token of their own choice puts it there beforehand.
pub(crate) fn ensure(dir: &Path, database: &Database) -> Result<(), OpenError> {
    let failed = |source| OpenError::Registry { dir: dir.to_owned(), source };
    let known = database
        .read(|connection| {
            Ok(connection.query_row("SELECT EXISTS (SELECT 1 FROM keys WHERE tenant IS NULL)", [], |row| row.get(0))?)
        })
        .map_err(failed)?;
    if known {
        return Ok(());
    }
    let token = token(dir)?;
    database
        .write(
            |transaction| {
                let new = NewKey {
                    tenant: None,
                    role: Role::Operator,
                    name: "operator".to_owned(),
                    scope: Scope::default(),
                    quota: Quota::default(),
                    expires_at: None,
                };
                let (key, _) = keys::insert(transaction, &Actor::host(), Owner::Operator, &new, &token)?;
                outbox::put(
                    transaction,
                    &ChangeEvent {
                        tenant: None,
                        actor: Actor::host().0,
                        action: "key.create".to_owned(),
                        subject: key.id.clone(),
                        detail: keys::detail(&key),
                    },
                )
            },
            |_| (),
        )
        .map_err(failed)
}

fn token(dir: &Path) -> Result<Token, OpenError> {
    let path = dir.join("operator.key");
    let mut text = String::new();
    match File::open(&path).and_then(|file| file.take(200).read_to_string(&mut text)) {
        Ok(_) => {
            fs::set_permissions(&path, Permissions::from_mode(0o600))
                .map_err(OpenError::io("protect the operator's key", &path))?;
            Token::parse(Role::Operator, text.trim()).ok_or(OpenError::OperatorKey { path })
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(OpenError::OperatorKey { path }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let token = Token::new(Role::Operator)
                .map_err(|error| OpenError::Registry { dir: dir.to_owned(), source: RegistryError::from(error) })?;
            files::write_whole(&path, format!("{}\n", token.expose()).as_bytes())
                .map_err(OpenError::io("write the operator's key", &path))?;
            Ok(token)
        }
        Err(error) => Err(OpenError::io("read the operator's key", &path)(error)),
    }
}
