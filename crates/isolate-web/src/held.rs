//! State in Rust that belongs to an object in JavaScript and goes when that object is collected.

use std::cell::RefCell;
use std::collections::HashMap;
use std::thread::LocalKey;

/// All states of one kind, by the number that their object carries.
pub struct Held<T> {
    next: u32,
    states: HashMap<u32, State<T>>,
}

struct State<T> {
    value: T,
    /// Keeps the finaliser registered.
    _owner: v8::Weak<v8::Object>,
}

impl<T> Default for Held<T> {
    fn default() -> Self {
        Self { next: 0, states: HashMap::new() }
    }
}

pub type Store<T> = LocalKey<RefCell<Held<T>>>;

/// Makes the object that owns `value`; its property `id` is for [`with`].
pub fn hold<'s, T: 'static>(
    scope: &mut v8::PinScope<'s, '_>,
    store: &'static Store<T>,
    value: T,
) -> Option<v8::Local<'s, v8::Object>> {
    let id = store.with_borrow_mut(|held| {
        held.next = held.next.wrapping_add(1);
        held.next
    });
    let owner = v8::Object::new(scope);
    let key = v8::String::new(scope, "id")?;
    let number = v8::Integer::new_from_unsigned(scope, id);
    owner.set(scope, key.into(), number.into())?;
    let weak = v8::Weak::with_guaranteed_finalizer(
        scope,
        owner,
        Box::new(move || {
            store.with_borrow_mut(|held| held.states.remove(&id));
        }),
    );
    store.with_borrow_mut(|held| held.states.insert(id, State { value, _owner: weak }));
    Some(owner)
}

/// Runs `action` on the state with the number in `id`.
pub fn with<T, R>(store: &'static Store<T>, id: v8::Local<v8::Value>, action: impl FnOnce(&mut T) -> R) -> Option<R> {
    let id = v8::Local::<v8::Uint32>::try_from(id).ok()?.value();
    store.with_borrow_mut(|held| held.states.get_mut(&id).map(|state| action(&mut state.value)))
}
