//! Tenants.

use crate::clock::now;
use crate::deployments::tenant_uid;
use crate::keys::{self, Owner};
use crate::registry::{Change, Wish};
use crate::snapshot::{Edit, to_json};
use crate::{
    Actor, ChangeEvent, Directory, NewKey, NewTenant, Quota, Registry, RegistryError, Role, Scope, Tenant, TenantPatch,
    Token, name, vault,
};
use std::collections::BTreeMap;
use std::sync::Arc;

const GREATEST_WEIGHT: u32 = 1000;

impl Registry {
    /// Makes a tenant with one key for each of its roles.
    pub fn create_tenant(&self, actor: &Actor, name: &str) -> Result<NewTenant, RegistryError> {
        self.create_tenant_with(actor, name, TenantPatch::default())
    }

    /// The same, with settings from the start.
    pub fn create_tenant_with(
        &self,
        actor: &Actor,
        name: &str,
        settings: TenantPatch,
    ) -> Result<NewTenant, RegistryError> {
        name::check("tenant", name)?;
        check(&settings)?;
        let mut uid = [0; 16];
        getrandom::fill(&mut uid)?;
        let tenant = Tenant {
            name: name.to_owned(),
            created_at: now(),
            weight: settings.weight.unwrap_or(1),
            quota: settings.quota.unwrap_or_default(),
            recording: settings.recording.unwrap_or(false),
            approval: settings.approval.unwrap_or(false),
            step: 0,
            servers: BTreeMap::new(),
        };
        self.change(|transaction, directory| {
            if directory.tenants.contains_key(name) {
                return Err(RegistryError::Exists { kind: "tenant", name: name.to_owned() });
            }
            transaction.execute(
                "INSERT INTO tenants (name, uid, created_at, weight, quota, recording, approval)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                (
                    name,
                    uid,
                    tenant.created_at,
                    tenant.weight,
                    to_json(&tenant.quota)?,
                    tenant.recording,
                    tenant.approval,
                ),
            )?;
            let tenant = Arc::new(tenant);
            let mut edits = vec![Edit::Tenant(tenant.clone())];
            let mut ids = serde_json::Map::new();
            let mut make_key = |role: Role| -> Result<Token, RegistryError> {
                let token = Token::new(role)?;
                let (key, hash) =
                    keys::insert(transaction, actor, Owner::Tenant(name), &first_key(name, role), &token)?;
                ids.insert(role.to_string(), key.id.clone().into());
                edits.push(Edit::Key(hash, Arc::new(key)));
                Ok(token)
            };
            let new = NewTenant {
                admin_key: make_key(Role::Admin)?,
                deploy_key: make_key(Role::Deploy)?,
                call_key: make_key(Role::Call)?,
                tenant: tenant.clone(),
            };
            let mut detail = describe(&tenant);
            detail["keys"] = ids.into();
            Ok(Wish::Change(Change { edits, event: event(actor, name, "tenant.create", Some(detail)), answer: new }))
        })
    }

    pub fn update_tenant(&self, actor: &Actor, name: &str, patch: TenantPatch) -> Result<(), RegistryError> {
        check(&patch)?;
        self.change(|transaction, directory| {
            let mut tenant = Tenant::clone(find(directory, name)?);
            tenant.weight = patch.weight.unwrap_or(tenant.weight);
            tenant.quota = patch.quota.unwrap_or(tenant.quota);
            tenant.recording = patch.recording.unwrap_or(tenant.recording);
            tenant.approval = patch.approval.unwrap_or(tenant.approval);
            transaction.execute(
                "UPDATE tenants SET weight = ?1, quota = ?2, recording = ?3, approval = ?4 WHERE name = ?5",
                (tenant.weight, to_json(&tenant.quota)?, tenant.recording, tenant.approval, name),
            )?;
            let event = event(actor, name, "tenant.update", Some(describe(&tenant)));
            Ok(Wish::Change(Change { edits: vec![Edit::Tenant(Arc::new(tenant))], event, answer: () }))
        })
    }

    /// What no other tenant has or had, also if it is called the same.
    pub fn tenant_mark(&self, name: &str) -> Result<String, RegistryError> {
        self.database().read(|connection| Ok(hex::encode(tenant_uid(connection, name)?)))
    }

    /// Removes a tenant and everything it has; only the audit log remembers it.
    pub fn delete_tenant(&self, actor: &Actor, name: &str) -> Result<(), RegistryError> {
        let uid = self.change(|transaction, directory| {
            find(directory, name)?;
            let uid = tenant_uid(transaction, name)?;
            vault::remove(transaction, name)?;
            transaction.execute("DELETE FROM tenants WHERE name = ?1", [name])?;
            let edits = vec![Edit::TenantGone(name.to_owned())];
            Ok(Wish::Change(Change { edits, event: event(actor, name, "tenant.delete", None), answer: uid }))
        })?;
        self.layers().tidy(self.database(), &uid);
        self.logs().remove_tenant(name);
        self.database().shrink();
        Ok(())
    }
}

pub(crate) fn find<'a>(directory: &'a Directory, name: &str) -> Result<&'a Arc<Tenant>, RegistryError> {
    directory.tenants.get(name).ok_or_else(|| RegistryError::not_found("tenant", name))
}

fn check(settings: &TenantPatch) -> Result<(), RegistryError> {
    if settings.weight.is_some_and(|weight| !(1..=GREATEST_WEIGHT).contains(&weight)) {
        return Err(RegistryError::BadValue { what: format!("a weight is a number from 1 to {GREATEST_WEIGHT}") });
    }
    settings.quota.as_ref().map_or(Ok(()), keys::check_quota)
}

fn first_key(tenant: &str, role: Role) -> NewKey {
    NewKey {
        tenant: Some(tenant.to_owned()),
        role,
        name: role.to_string(),
        scope: Scope::default(),
        quota: Quota::default(),
        expires_at: None,
    }
}

fn describe(tenant: &Tenant) -> serde_json::Value {
    serde_json::json!({
        "weight": tenant.weight, "quota": tenant.quota, "recording": tenant.recording, "approval": tenant.approval,
    })
}

fn event(actor: &Actor, name: &str, action: &str, detail: Option<serde_json::Value>) -> ChangeEvent {
    ChangeEvent {
        tenant: Some(name.to_owned()),
        actor: actor.0.clone(),
        action: action.to_owned(),
        subject: name.to_owned(),
        detail,
    }
}
