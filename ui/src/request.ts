// Requests to the API server, with the rights of the user.
import { key, ended } from "./session";

export class Refusal extends Error {
  constructor(readonly status: number, message: string, readonly body: any) {
    super(message);
  }
}

export type Answer = { text: string; warning: string };

export async function send(
  method: string, path: string, body = "", contentType = "application/json", accept = "application/json",
): Promise<Answer> {
  let answer: Response;
  try {
    answer = await fetch("request", {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Homeport-Key": key() },
      body: JSON.stringify({ method, path, body, contentType, accept }),
    });
  } catch {
    throw new Refusal(0, "the plane does not answer: is it running?", null);
  }
  const text = await answer.text();
  const status = Number(answer.headers.get("X-Homeport-Status") ?? answer.status);
  if (answer.status === 401) ended(told(text));
  if (status >= 300) {
    let parsed: any = null;
    try { parsed = JSON.parse(text); } catch { /* plain text */ }
    throw new Refusal(status, parsed?.message ?? text.slice(0, 300), parsed);
  }
  return { text, warning: answer.headers.get("X-Homeport-Warning") ?? "" };
}

/** Why the session ended, where the server knows. */
function told(text: string): string | undefined {
  try { return JSON.parse(text).ended; } catch { return undefined; }
}

/** Work that the server of the page does as the user, outside the API server. */
export async function errand(name: string, options: object, signal?: AbortSignal): Promise<any> {
  let answer: Response;
  try {
    answer = await fetch("errand", {
      method: "POST", headers: { "Content-Type": "application/json", "X-Homeport-Key": key() }, body: JSON.stringify({ errand: name, options }), signal,
    });
  } catch {
    throw new Refusal(0, "the plane does not answer: is it running?", null);
  }
  if (answer.status === 401) ended();
  const content = await answer.json();
  const problem = answer.ok ? content.problem : content.message;
  if (problem) throw new Refusal(answer.status, problem, content);
  return content.result;
}

export async function get(path: string): Promise<any> {
  return JSON.parse((await send("GET", path)).text);
}

export async function may(verb: string, group: string, resource: string, namespace: string, name = ""): Promise<boolean> {
  const [plural, subresource = ""] = resource.split("/");
  return review({ resourceAttributes: { verb, group, resource: plural, subresource, namespace, name } });
}

/** For paths that are no objects. */
export const mayReach = (verb: string, path: string): Promise<boolean> => review({ nonResourceAttributes: { verb, path } });

async function review(spec: object): Promise<boolean> {
  const review = { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview", spec };
  const path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
  return Boolean(JSON.parse((await send("POST", path, JSON.stringify(review))).text).status?.allowed);
}
