import { TypeErrorCtor, freeze, push } from "./primordials.js";
import { asyncContext } from "./host.js";
import { dictionary, expose, illegalConstructor, internal, isObject, requireArguments, sequence, sequenceFrom } from "./webidl.js";
import { DOMException } from "./dom_exception.js";
import { MessageEvent } from "./event.js";
import { EventTarget, fire, handlerAttribute } from "./event_target.js";
import { cloneAndTransfer, registerTransferable } from "./structured_clone.js";
import { addTimer } from "./timers.js";

let pipeOf;
let isPort;
let attach;

/** One end of a channel, apart from the object that shows it: transferring a port gives its end another object. */
const makeEnd = () => ({ other: null, queue: [], started: false, port: null });

export class MessagePort extends EventTarget {
  #end = null;
  #handlers = {};
  static {
    isPort = (value) => isObject(value) && #end in value;
    pipeOf = (port) => port.#end;
    attach = (port, end) => {
      port.#end = end;
      if (end !== null) end.port = port;
      return port;
    };
    handlerAttribute(MessagePort.prototype, "message", (port) => port.#handlers, (port) => start(port.#end));
    handlerAttribute(MessagePort.prototype, "messageerror", (port) => port.#handlers);
  }
  constructor(key = undefined) {
    if (key !== internal) throw illegalConstructor();
    super();
  }
  postMessage(message, options = undefined) {
    const end = this.#end;
    requireArguments(arguments.length, 1, "MessagePort.postMessage");
    const transfer = transferList(options);
    if (transfer.includes(this)) throw new DOMException("a port cannot be sent through itself", "DataCloneError");
    const { result, received } = cloneAndTransfer(message, transfer);
    const other = end?.other;
    if (!other) return;
    push(other.queue, { data: result, ports: received.filter(isPort) });
    if (other.started) deliverSoon(other);
  }
  start() {
    start(this.#end);
  }
  close() {
    const end = this.#end;
    if (end === null) return;
    if (end.other !== null) end.other.other = null;
    end.other = null;
    end.queue = [];
    this.#end = null;
  }
}
expose(MessagePort);
registerTransferable((value) => isPort(value), (port) => {
  const end = pipeOf(port);
  if (end === null) throw new DOMException("the port is closed or was transferred", "DataCloneError");
  attach(port, null);
  end.started = false;
  return attach(new MessagePort(internal), end);
});

function transferList(options) {
  if (options === undefined || options === null) return [];
  const toObject = (value) => {
    if (!isObject(value)) throw new TypeErrorCtor("an item of the transfer list is not an object");
    return value;
  };
  const method = isObject(options) ? options[Symbol.iterator] : undefined;
  if (method !== undefined && method !== null) return sequenceFrom(options, method, toObject, "the transfer list");
  const { transfer } = dictionary(options, "the options");
  return transfer === undefined ? [] : sequence(transfer, toObject, "the transfer list");
}

function start(end) {
  if (end === null || end.started) return;
  end.started = true;
  for (let i = 0; i < end.queue.length; i++) deliverSoon(end);
}

/** Each message is a task of its own. */
function deliverSoon(end) {
  addTimer(() => {
    if (!end.started || end.queue.length === 0 || end.port === null) return;
    const { data, ports } = end.queue.shift();
    fire(end.port, new MessageEvent("message", { data, ports: freeze(ports) }));
  }, 0, asyncContext());
}

export class MessageChannel {
  #port1 = attach(new MessagePort(internal), makeEnd());
  #port2 = attach(new MessagePort(internal), makeEnd());
  constructor() {
    pipeOf(this.#port1).other = pipeOf(this.#port2);
    pipeOf(this.#port2).other = pipeOf(this.#port1);
  }
  get port1() {
    return this.#port1;
  }
  get port2() {
    return this.#port2;
  }
}
expose(MessageChannel);
