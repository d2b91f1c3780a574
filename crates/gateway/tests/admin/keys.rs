use crate::stage::{Stage, in_time, servers};
use insta::assert_snapshot;
use registry::{Actor, NewKey, Quota, Role, Scope};
use serde_json::{Value, json};

const KEYS: &str = "/admin/v1/tenants/acme/keys";

fn token(made: &Value) -> &str {
    made["token"].as_str().unwrap()
}

#[tokio::test]
async fn a_key_is_made_shown_once_and_revoked_at_once() {
    in_time(async {
        let stage = Stage::new().await;
        let order = json!({
            "role": "call", "name": "of the shop", "scope": {"servers": ["prices"], "tools": ["prices/double", "prices/h*"]},
            "quota": {"requests_per_s": 1.5}, "expires_in_s": 3600,
        });
        let made = stage.post(&stage.acme.admin, KEYS, order).await;
        assert_snapshot!(made.shown(), @r#"
        201 {
          "key": {
            "created_at": "[created_at]",
            "expires_at": "[expires_at]",
            "id": "[id]",
            "name": "of the shop",
            "quota": {
              "burst": null,
              "concurrent": null,
              "cpu_s_per_min": null,
              "egress_bytes_per_min": null,
              "requests_per_s": 1.5
            },
            "revoked_at": null,
            "role": "call",
            "scope": {
              "servers": [
                "prices"
              ],
              "tools": [
                "prices/double",
                "prices/h*"
              ]
            },
            "state": "active",
            "tenant": "acme"
          },
          "token": "bh_call_[secret]"
        }
        "#);
        let made = made.json();
        let in_an_hour = registry::now() + 3600;
        assert!((in_an_hour - 60..=in_an_hour).contains(&made["key"]["expires_at"].as_u64().unwrap()));
        assert_eq!(stage.get(token(&made), "/admin/v1/tenants/acme").await.status, 200);

        let listed = stage.get(&stage.acme.admin, KEYS).await;
        assert!(!listed.text().contains(token(&made)), "its secret is not shown again");
        assert_eq!(listed.json()["keys"][0], made["key"]);

        let path = format!("{KEYS}/{}", made["key"]["id"].as_str().unwrap());
        assert_eq!(stage.ask(&stage.acme.admin, "DELETE", &path, None).await.status, 204);
        let refused = stage.get(token(&made), "/admin/v1/tenants/acme").await;
        assert_snapshot!(refused.shown(), @r#"
        401 {
          "error": {
            "code": "invalid_token",
            "hint": "send `Authorization: Bearer KEY`; `bulkhead key create` makes a key",
            "message": "the key is unknown or was revoked"
          }
        }
        "#);
        assert_eq!(stage.get(&stage.acme.admin, KEYS).await.json()["keys"][0]["state"], "revoked");
        assert_eq!(stage.ask(&stage.acme.admin, "DELETE", &path, None).await.status, 204, "revoking again is no error");
    })
    .await;
}

#[tokio::test]
async fn keys_are_listed_in_pages() {
    in_time(async {
        let stage = Stage::new().await;
        let (expired, _) = stage.key(Some("acme"), Role::Call, Scope::default(), Some(1));
        let page = stage.get(&stage.acme.admin, &format!("{KEYS}?limit=1")).await;
        assert_snapshot!(page.shown(), @r#"
        200 {
          "keys": [
            {
              "created_at": "[created_at]",
              "expires_at": "[expires_at]",
              "id": "[id]",
              "name": "of a test",
              "quota": {
                "burst": null,
                "concurrent": null,
                "cpu_s_per_min": null,
                "egress_bytes_per_min": null,
                "requests_per_s": null
              },
              "revoked_at": null,
              "role": "call",
              "scope": {
                "servers": null,
                "tools": null
              },
              "state": "expired",
              "tenant": "acme"
            }
          ],
          "next": "[next]"
        }
        "#);
        assert_eq!(page.json()["keys"][0]["id"], expired.id);
        let mut seen = vec![expired.id];
        let mut next = page.json()["next"].clone();
        while let Some(cursor) = next.as_str() {
            let page = stage.get(&stage.acme.admin, &format!("{KEYS}?limit=1&cursor={cursor}")).await.json();
            seen.push(page["keys"][0]["id"].as_str().unwrap().to_owned());
            next = page["next"].clone();
        }
        assert_eq!(seen.len(), 4);
        assert_eq!(stage.get(&stage.acme.admin, &format!("{KEYS}?cursor=nobody")).await.code(), "bad_query");
    })
    .await;
}

#[tokio::test]
async fn nobody_makes_a_key_above_their_own() {
    in_time(async {
        let stage = Stage::new().await;
        let make = async |key: &str, body| stage.post(key, KEYS, body).await.shown();
        assert_snapshot!(make(&stage.acme.deploy, json!({"role": "call"})).await, @r#"
        403 {
          "error": {
            "code": "forbidden",
            "hint": null,
            "message": "this needs a key with the role `admin`, and this one has `deploy`"
          }
        }
        "#);
        assert_snapshot!(make(&stage.acme.admin, json!({"role": "operator"})).await, @r#"
        403 {
          "error": {
            "code": "forbidden",
            "hint": null,
            "message": "a key with the role `admin` makes no key with the role `operator`"
          }
        }
        "#);
        assert_snapshot!(make(&stage.operator, json!({"role": "operator"})).await, @r#"
        422 {
          "error": {
            "code": "bad_body",
            "hint": "POST /admin/v1/keys makes keys for operators",
            "message": "`role`: a tenant has no key with the role `operator`"
          }
        }
        "#);
        assert_eq!(stage.post(&stage.globex.admin, KEYS, json!({"role": "call"})).await.status, 404);
        assert_eq!(stage.post(&stage.acme.admin, "/admin/v1/keys", json!({})).await.status, 403);
        assert_eq!(stage.post(&stage.acme.admin, KEYS, json!({"role": "admin"})).await.status, 201);
        assert_eq!(stage.post(&stage.operator, KEYS, json!({"role": "admin"})).await.status, 201);
    })
    .await;
}

#[tokio::test]
async fn nobody_makes_a_key_with_a_wider_scope() {
    in_time(async {
        let stage = Stage::new().await;
        let scope = Scope { tools: Some(vec!["prices/d*".to_owned()]), ..servers(&["prices"]) };
        let (_, narrow) = stage.key(Some("acme"), Role::Admin, scope, None);
        let make =
            async |scope: Value| stage.post(narrow.expose(), KEYS, json!({"role": "call", "scope": scope})).await;
        assert_snapshot!(make(json!({})).await.shown(), @r#"
        403 {
          "error": {
            "code": "forbidden",
            "hint": null,
            "message": "the scope is wider than that of the key that asks for it"
          }
        }
        "#);
        for wider in [
            json!({"servers": ["prices"]}),
            json!({"tools": ["prices/double"]}),
            json!({"servers": ["prices", "stock"], "tools": ["prices/double"]}),
            json!({"servers": ["stock"], "tools": ["prices/double"]}),
            json!({"servers": ["prices"], "tools": ["prices/*"]}),
            json!({"servers": ["prices"], "tools": ["prices/double", "stock/double"]}),
        ] {
            assert_eq!(make(wider.clone()).await.code(), "forbidden", "{wider}");
        }
        let within = json!({"servers": ["prices"], "tools": ["prices/double", "prices/da*"]});
        assert_eq!(make(within).await.status, 201);
    })
    .await;
}

/// An admin of some servers has no say about keys for the others.
#[tokio::test]
async fn a_scoped_admin_sees_and_revokes_what_is_within_its_scope() {
    in_time(async {
        let stage = Stage::new().await;
        let (_, narrow) = stage.key(Some("acme"), Role::Admin, servers(&["prices"]), None);
        let (within, _) = stage.key(Some("acme"), Role::Call, servers(&["prices"]), None);
        let (outside, _) = stage.key(Some("acme"), Role::Call, servers(&["stock"]), None);
        let listed = stage.get(narrow.expose(), KEYS).await.json();
        let ids: Vec<_> = listed["keys"].as_array().unwrap().iter().map(|key| key["id"].as_str().unwrap()).collect();
        assert!(ids.contains(&within.id.as_str()) && !ids.contains(&outside.id.as_str()));
        assert_eq!(ids.len(), 2, "its own and the one within");
        let revoke = async |id: &str| stage.ask(narrow.expose(), "DELETE", &format!("{KEYS}/{id}"), None).await.status;
        assert_eq!(revoke(&outside.id).await, 404);
        assert_eq!(revoke(&within.id).await, 204);
        let change =
            stage.ask(narrow.expose(), "PATCH", "/admin/v1/tenants/acme", Some(json!({"recording": true}))).await;
        assert_snapshot!(change.shown(), @r#"
        403 {
          "error": {
            "code": "forbidden",
            "hint": null,
            "message": "this concerns the whole tenant, and this key is good for some of its servers or tools only"
          }
        }
        "#);
    })
    .await;
}

#[tokio::test]
async fn a_key_that_expires_makes_none_that_outlives_it() {
    in_time(async {
        let stage = Stage::new().await;
        let soon = registry::now() + 600;
        let (_, mortal) = stage.key(Some("acme"), Role::Admin, Scope::default(), Some(soon));
        let make = async |body: Value| stage.post(mortal.expose(), KEYS, body).await;
        assert_eq!(make(json!({"role": "call"})).await.json()["key"]["expires_at"], soon);
        assert_eq!(make(json!({"role": "call", "expires_at": soon - 1})).await.status, 201);
        assert_eq!(make(json!({"role": "call", "expires_at": soon + 1})).await.code(), "forbidden");
        assert_eq!(make(json!({"role": "call", "expires_in_s": 86_400})).await.code(), "forbidden");
    })
    .await;
}

#[tokio::test]
async fn a_key_with_a_quota_makes_none_with_more() {
    in_time(async {
        let stage = Stage::new().await;
        let limited = NewKey {
            tenant: Some("acme".to_owned()),
            role: Role::Admin,
            name: "limited".to_owned(),
            scope: Scope::default(),
            quota: Quota { requests_per_s: Some(5.0), concurrent: Some(2), ..Quota::default() },
            expires_at: None,
        };
        let (_, limited) = stage.registry.create_key(&Actor("test".to_owned()), limited).unwrap();
        let make =
            async |quota: Value| stage.post(limited.expose(), KEYS, json!({"role": "admin", "quota": quota})).await;
        let made = stage.post(limited.expose(), KEYS, json!({"role": "admin"})).await.json();
        let inherited = json!({
            "requests_per_s": 5.0, "burst": null, "concurrent": 2, "cpu_s_per_min": null, "egress_bytes_per_min": null,
        });
        assert_eq!(made["key"]["quota"], inherited, "what is not asked for is the maker's");
        let less = make(json!({"requests_per_s": 1.5, "burst": 7})).await.json();
        let quota = &less["key"]["quota"];
        assert_eq!(
            (&quota["requests_per_s"], &quota["burst"], &quota["concurrent"]),
            (&json!(1.5), &json!(7), &json!(2))
        );
        assert_eq!(make(json!({"requests_per_s": 5.0, "concurrent": 2})).await.status, 201);
        assert_eq!(make(json!({"concurrent": 3})).await.code(), "forbidden");
        assert_snapshot!(make(json!({"requests_per_s": 5.5})).await.shown(), @r#"
        403 {
          "error": {
            "code": "forbidden",
            "hint": null,
            "message": "`quota.requests_per_s`: this key has 5 and makes no key with more"
          }
        }
        "#);
    })
    .await;
}

#[tokio::test]
async fn keys_that_make_no_sense() {
    in_time(async {
        let stage = Stage::new().await;
        let make = async |body| stage.post(&stage.acme.admin, KEYS, body).await.shown();
        assert_snapshot!(make(json!({"role": "king"})).await, @r#"
        422 {
          "error": {
            "code": "bad_body",
            "hint": null,
            "message": "`role`: unknown variant `king`, expected one of `operator`, `admin`, `deploy`, `call` at line 1 column 14"
          }
        }
        "#);
        assert_snapshot!(make(json!({"name": "x"})).await, @r#"
        422 {
          "error": {
            "code": "bad_body",
            "hint": null,
            "message": "missing field `role` at line 1 column 12"
          }
        }
        "#);
        assert_snapshot!(make(json!({"role": "call", "expires_in_s": 5, "expires_at": 5})).await, @r#"
        422 {
          "error": {
            "code": "bad_body",
            "hint": null,
            "message": "`expires_in_s` and `expires_at` exclude each other"
          }
        }
        "#);
        assert_snapshot!(make(json!({"role": "call", "expires_at": 5})).await, @r#"
        422 {
          "error": {
            "code": "bad_body",
            "hint": null,
            "message": "the key would be expired from the start"
          }
        }
        "#);
        assert_snapshot!(make(json!({"role": "call", "expires_in_s": u64::MAX})).await, @r#"
        422 {
          "error": {
            "code": "bad_value",
            "hint": null,
            "message": "a key cannot expire after the year 9999"
          }
        }
        "#);
        assert_snapshot!(make(json!({"role": "call", "scope": {"servers": ["No Name"]}})).await, @r#"
        422 {
          "error": {
            "code": "bad_body",
            "hint": null,
            "message": "`scope.servers`: `No Name` cannot be the name of a server"
          }
        }
        "#);
        assert_snapshot!(make(json!({"role": "call", "scope": {"tools": ["double"]}})).await, @r#"
        422 {
          "error": {
            "code": "bad_body",
            "hint": "write `server/tool`, or `server/prefix*` for all tools that begin alike",
            "message": "`scope.tools`: `double` names no tool"
          }
        }
        "#);
        assert_snapshot!(make(json!({"role": "call", "scope": {"tool": []}})).await, @r#"
        422 {
          "error": {
            "code": "bad_body",
            "hint": null,
            "message": "`scope.tool`: unknown field `tool`, expected `servers` or `tools` at line 1 column 30"
          }
        }
        "#);
        assert_snapshot!(make(json!({"role": "call", "name": "a\nb"})).await, @r#"
        422 {
          "error": {
            "code": "bad_value",
            "hint": null,
            "message": "the name of a key has at most 200 characters, all of them printable"
          }
        }
        "#);
        assert_eq!(stage.registry.keys(Some("acme"), None, usize::MAX, |_| true).unwrap().unwrap().len(), 3, "nothing was made");
    })
    .await;
}

#[tokio::test]
async fn an_expired_key_is_none() {
    in_time(async {
        let stage = Stage::new().await;
        let (_, expired) = stage.key(Some("acme"), Role::Admin, Scope::default(), Some(registry::now()));
        assert_snapshot!(stage.get(expired.expose(), "/admin/v1/tenants/acme").await.shown(), @r#"
        401 {
          "error": {
            "code": "invalid_token",
            "hint": "send `Authorization: Bearer KEY`; `bulkhead key create` makes a key",
            "message": "the key has expired"
          }
        }
        "#);
    })
    .await;
}

#[tokio::test]
async fn the_operators_last_key_stays() {
    in_time(async {
        let stage = Stage::new().await;
        let first = stage.get(&stage.operator, "/admin/v1/keys").await;
        assert_snapshot!(first.shown(), @r#"
        200 {
          "keys": [
            {
              "created_at": "[created_at]",
              "expires_at": null,
              "id": "[id]",
              "name": "operator",
              "quota": {
                "burst": null,
                "concurrent": null,
                "cpu_s_per_min": null,
                "egress_bytes_per_min": null,
                "requests_per_s": null
              },
              "revoked_at": null,
              "role": "operator",
              "scope": {
                "servers": null,
                "tools": null
              },
              "state": "active",
              "tenant": null
            }
          ],
          "next": null
        }
        "#);
        let first = first.json()["keys"][0]["id"].as_str().unwrap().to_owned();
        let revoke = async |id: &str| stage.ask(&stage.operator, "DELETE", &format!("/admin/v1/keys/{id}"), None).await;
        let refused = revoke(&first).await;
        assert_eq!((refused.status.as_u16(), refused.code().as_str()), (409, "conflict"));
        assert!(refused.text().contains("last operator's key"), "{}", refused.text());

        let second = stage.post(&stage.operator, "/admin/v1/keys", json!({"name": "second"})).await;
        assert_snapshot!(second.shown(), @r#"
        201 {
          "key": {
            "created_at": "[created_at]",
            "expires_at": null,
            "id": "[id]",
            "name": "second",
            "quota": {
              "burst": null,
              "concurrent": null,
              "cpu_s_per_min": null,
              "egress_bytes_per_min": null,
              "requests_per_s": null
            },
            "revoked_at": null,
            "role": "operator",
            "scope": {
              "servers": null,
              "tools": null
            },
            "state": "active",
            "tenant": null
          },
          "token": "bh_operator_[secret]"
        }
        "#);
        let second = second.json();
        assert_eq!(stage.get(token(&second), "/admin/v1/host").await.status, 200);
        assert_eq!(revoke("key-nobody").await.status, 404);
        assert_eq!(revoke(&first).await.status, 204, "there is another now");
        let id = second["key"]["id"].as_str().unwrap();
        let refused = stage.ask(token(&second), "DELETE", &format!("/admin/v1/keys/{id}"), None).await;
        assert_eq!(refused.status, 409);
    })
    .await;
}

#[tokio::test]
async fn an_operators_key_is_not_revoked_by_way_of_a_tenant() {
    in_time(async {
        let stage = Stage::new().await;
        let (spare, _) = stage.key(None, Role::Operator, Scope::default(), None);
        let (other, _) = stage.key(Some("globex"), Role::Call, Scope::default(), None);
        for id in [&spare.id, &other.id] {
            let seen = stage.ask(&stage.acme.admin, "DELETE", &format!("{KEYS}/{id}"), None).await;
            assert_eq!(seen.status, 404);
        }
        let seen = stage.ask(&stage.operator, "DELETE", &format!("/admin/v1/keys/{}", other.id), None).await;
        assert_eq!(seen.status, 404, "nor the other way round");
    })
    .await;
}
