// Runs inside workerd. The request says which dynamic worker serves it:
//   POST /fresh    a new one, dropped afterwards
//   POST /held/ID  the one of that ID, which stays
const code = tool => ({
  compatibilityDate: '2026-01-01',
  mainModule: 'tool.js',
  modules: {
    'tool.js': `${tool}
let served = 0;
export default {
  async fetch(request) {
    served += 1;
    return Response.json(run(await request.json()), { headers: { served: String(served) } });
  },
};`,
  },
  globalOutbound: null,
});

export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    const tool = decodeURIComponent(request.headers.get('tool'));
    const worker = pathname === '/fresh' ? env.LOADER.load(code(tool)) : env.LOADER.get(pathname, () => code(tool));
    return worker.getEntrypoint().fetch('http://tool/', { method: 'POST', body: await request.text() });
  },
};
