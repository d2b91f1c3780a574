//! structuredClone, by V8's own serialiser. Objects of the platform's classes are cloned by JavaScript.

use std::cell::RefCell;
use std::rc::Rc;
use v8::{Global, Local, SharedRef, ValueDeserializerHelper, ValueSerializerHelper};

/// What one run of the algorithm shares between writing and reading.
struct Hooks {
    /// `isPlatformObject(object): boolean`
    is_host: Global<v8::Function>,
    /// `clonePlatformObject(object): object`, throws what cannot be cloned.
    clone_host: Global<v8::Function>,
    /// `dataCloneError(message): DOMException`
    error: Global<v8::Function>,
    cloned: RefCell<Vec<Global<v8::Object>>>,
    shared: RefCell<Vec<SharedRef<v8::BackingStore>>>,
}

impl Hooks {
    fn call<'s>(
        scope: &mut v8::PinScope<'s, '_>,
        function: &Global<v8::Function>,
        argument: Local<'s, v8::Value>,
    ) -> Option<Local<'s, v8::Value>> {
        let function = Local::new(scope, function);
        let receiver = v8::undefined(scope);
        function.call(scope, receiver.into(), &[argument])
    }

    fn throw(&self, scope: &mut v8::PinScope, message: &str) {
        let Some(text) = v8::String::new(scope, message) else { return };
        if let Some(error) = Self::call(scope, &self.error, text.into()) {
            scope.throw_exception(error);
        }
    }
}

struct Writer(Rc<Hooks>);
struct Reader(Rc<Hooks>);

impl v8::ValueSerializerImpl for Writer {
    fn throw_data_clone_error<'s>(&self, scope: &mut v8::PinScope<'s, '_>, message: Local<'s, v8::String>) {
        if let Some(error) = Hooks::call(scope, &self.0.error, message.into()) {
            scope.throw_exception(error);
        }
    }

    fn has_custom_host_object(&self, _isolate: &v8::Isolate) -> bool {
        true
    }

    fn is_host_object<'s>(&self, scope: &mut v8::PinScope<'s, '_>, object: Local<'s, v8::Object>) -> Option<bool> {
        Hooks::call(scope, &self.0.is_host, object.into()).map(|answer| answer.is_true())
    }

    fn write_host_object<'s>(
        &self,
        scope: &mut v8::PinScope<'s, '_>,
        object: Local<'s, v8::Object>,
        serializer: &dyn ValueSerializerHelper,
    ) -> Option<bool> {
        let copy = Hooks::call(scope, &self.0.clone_host, object.into())?;
        let copy = Local::<v8::Object>::try_from(copy).ok()?;
        let mut cloned = self.0.cloned.borrow_mut();
        serializer.write_uint32(u32::try_from(cloned.len()).ok()?);
        cloned.push(Global::new(scope, copy));
        Some(true)
    }

    fn get_shared_array_buffer_id<'s>(
        &self,
        _scope: &mut v8::PinScope<'s, '_>,
        buffer: Local<'s, v8::SharedArrayBuffer>,
    ) -> Option<u32> {
        let mut shared = self.0.shared.borrow_mut();
        shared.push(buffer.get_backing_store());
        u32::try_from(shared.len() - 1).ok()
    }

    fn get_wasm_module_transfer_id(
        &self,
        scope: &mut v8::PinScope<'_, '_>,
        _module: Local<v8::WasmModuleObject>,
    ) -> Option<u32> {
        self.0.throw(scope, "a WebAssembly.Module cannot be cloned");
        None
    }
}

impl v8::ValueDeserializerImpl for Reader {
    fn read_host_object<'s>(
        &self,
        scope: &mut v8::PinScope<'s, '_>,
        deserializer: &dyn ValueDeserializerHelper,
    ) -> Option<Local<'s, v8::Object>> {
        let mut index = 0;
        if !deserializer.read_uint32(&mut index) {
            return None;
        }
        let cloned = self.0.cloned.borrow();
        cloned.get(usize::try_from(index).ok()?).map(|object| Local::new(scope, object))
    }

    fn get_shared_array_buffer_from_id<'s>(
        &self,
        scope: &mut v8::PinScope<'s, '_>,
        id: u32,
    ) -> Option<Local<'s, v8::SharedArrayBuffer>> {
        let shared = self.0.shared.borrow();
        let store = shared.get(usize::try_from(id).ok()?)?;
        Some(v8::SharedArrayBuffer::with_backing_store(scope, store))
    }
}

/// `structuredClone(value, buffers, isPlatformObject, clonePlatformObject, dataCloneError): value`
///
/// `buffers` are the ArrayBuffers to transfer, checked by JavaScript.
pub fn structured_clone<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    args: v8::FunctionCallbackArguments<'s>,
    mut rv: v8::ReturnValue,
) {
    if let Some(value) = run(scope, &args) {
        rv.set(value);
    }
}

/// None when something was thrown.
fn run<'s>(scope: &mut v8::PinScope<'s, '_>, args: &v8::FunctionCallbackArguments<'s>) -> Option<Local<'s, v8::Value>> {
    let hook = |scope: &mut v8::PinScope<'s, '_>, index| {
        let function = Local::<v8::Function>::try_from(args.get(index)).ok()?;
        Some(Global::new(scope, function))
    };
    let hooks = Rc::new(Hooks {
        is_host: hook(scope, 2)?,
        clone_host: hook(scope, 3)?,
        error: hook(scope, 4)?,
        cloned: RefCell::default(),
        shared: RefCell::default(),
    });
    let list = Local::<v8::Array>::try_from(args.get(1)).ok()?;
    let mut buffers = Vec::new();
    for index in 0..list.length() {
        buffers.push(Local::<v8::ArrayBuffer>::try_from(list.get_index(scope, index)?).ok()?);
    }
    let context = scope.get_current_context();
    let data = {
        let serializer = v8::ValueSerializer::new(scope, Box::new(Writer(hooks.clone())));
        serializer.write_header();
        for (index, buffer) in buffers.iter().enumerate() {
            serializer.transfer_array_buffer(u32::try_from(index).ok()?, *buffer);
        }
        serializer.write_value(context, args.get(0))?;
        serializer.release()
    };
    let moved = detach(scope, &hooks, &buffers)?;
    let deserializer = v8::ValueDeserializer::new(scope, Box::new(Reader(hooks)), &data);
    deserializer.read_header(context)?;
    for (index, buffer) in moved.into_iter().enumerate() {
        deserializer.transfer_array_buffer(u32::try_from(index).ok()?, buffer);
    }
    deserializer.read_value(context)
}

/// New buffers over the old ones' memory.
fn detach<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    hooks: &Hooks,
    buffers: &[Local<'s, v8::ArrayBuffer>],
) -> Option<Vec<Local<'s, v8::ArrayBuffer>>> {
    let mut moved = Vec::new();
    for buffer in buffers {
        if buffer.was_detached() || !buffer.is_detachable() {
            hooks.throw(scope, "an ArrayBuffer in the transfer list cannot be detached");
            return None;
        }
        let store = buffer.get_backing_store();
        buffer.detach(None)?;
        moved.push(v8::ArrayBuffer::with_backing_store(scope, &store));
    }
    Some(moved)
}
