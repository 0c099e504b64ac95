// The target's side of plugpull for Node: the same requests as plugpull.py, with nothing but node:http.
import http from "node:http";

function post(path, facts, headers = {}) {
  const body = JSON.stringify(facts);
  const options = {
    socketPath: process.env.PLUGPULL_PROVIDER,
    path,
    method: "POST",
    agent: false,
    headers: { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body), ...headers },
  };
  return new Promise((resolve, reject) => {
    const request = http.request(options, (reply) => {
      let text = "";
      reply.setEncoding("utf8");
      reply.on("data", (part) => (text += part));
      reply.on("end", () =>
        reply.statusCode < 300 ? resolve(text) : reject(new Error(`${path}: ${reply.statusCode} ${text}`)));
    });
    request.on("error", reject);
    request.end(body);
  });
}

export const effect = (name, args, key) =>
  post(`/effects/${name}`, args, key ? { "Idempotency-Key": key } : {});
export const call = (tool, args) => post(`/calls/${tool}`, args);
export const store = (session, items) => post(`/store/${session}/append`, { items });
export const stored = async (session) => JSON.parse(await post(`/store/${session}/items`, {}));
export const unstore = async (session) => JSON.parse(await post(`/store/${session}/pop`, {}));
export const clear = (session) => post(`/store/${session}/clear`, {});
export const paused = () => post("/paused", {});
export const answer = (text) => post("/answer", { text });
export const hello = (facts) => post("/hello", facts);
