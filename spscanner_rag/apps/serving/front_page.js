"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const [form, query, text, file, state, trouble] = ["ask", "query", "text", "file", "state", "trouble"].map($);
  const [go, stop, progress, source, shown, named] = ["go", "stop", "progress", "source", "shown", "named"].map($);
  const MOST_FILES = 50; // as the server's
  const LARGEST = 12 * 2 ** 20; // base64 adds a third, and a body has at most 16 MiB
  let chosen = []; // the dropped or chosen files; without one, the text is searched
  let reading = null; // the running request
  let preparing = null; // the request that reads the document before a question is asked
  let pause = null; // the timer after which a typed text is prepared
  let address = null; // the URL of the shown report
  const intro = [...shown.childNodes];

  const number = (value) => value.toLocaleString("en");

  function complain(message) {
    trouble.textContent = message;
    trouble.hidden = !message;
  }

  function name_source() {
    const size = text.value.length;
    const names = chosen.map((one) => one.name).join(", ");
    const several = chosen.length > 1 ? `${chosen.length} files: ${names}` : names;
    named.textContent = several || (size ? `pasted text, ${number(size)} characters` : "none yet");
    text.hidden = chosen.length > 0;
  }

  // An answer is shown only below the question and the document that it is about.
  function forget() {
    if (address) URL.revokeObjectURL(address);
    address = null;
    shown.replaceChildren(...intro);
    form.classList.remove("answered");
    if (!reading) state.textContent = "";
  }

  function choose(files) {
    complain("");
    if (files.length > MOST_FILES) {
      complain(`${number(files.length)} files were chosen; expected at most ${MOST_FILES}: use spscanner scan with a folder`);
      return;
    }
    const size = files.reduce((sum, one) => sum + one.size, 0);
    if (size > LARGEST) {
      const whole = files.length > 1 ? `${files.length} files have` : `${files[0].name} has`;
      complain(`${whole} ${number(Math.ceil(size / 2 ** 20))} MiB; expected at most 12 MiB: use spscanner scan`);
      return;
    }
    chosen = files;
    name_source();
    forget();
    prepare();
    if (files.length) query.focus();
  }

  const base64 = (one) =>
    new Promise((resolve, reject) => {
      const reader = new FileReader();
      reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
      reader.onerror = () => reject(new Error(`${one.name} cannot be read; choose it again`));
      reader.readAsDataURL(one);
    });

  async function* lines(body) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let parts = [];
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      const pieces = value.split("\n");
      parts.push(pieces.shift());
      for (const piece of pieces) {
        yield JSON.parse(parts.join(""));
        parts = [piece];
      }
    }
  }

  function tell({ tokens, of }) {
    progress.hidden = !of;
    progress.max = of || 1;
    progress.value = tokens;
    state.textContent = of ? `${number(tokens)} of ${number(of)} tokens read` : "Waiting";
  }

  function show(page) {
    forget();
    address = URL.createObjectURL(new Blob([page], { type: "text/html" }));
    const frame = document.createElement("iframe");
    frame.title = "The document, with its best sentences marked";
    frame.setAttribute("sandbox", "allow-scripts"); // no origin, so no access to this page or the server
    frame.src = address;
    shown.replaceChildren(frame);
    source.open = false;
    form.classList.add("answered");
    frame.addEventListener("load", () => frame.focus()); // so that its keys move between sentences
  }

  async function send(route, body, signal) {
    const named_file = async (one) => ({ file: await base64(one), name: one.name.slice(-300) });
    if (chosen.length > 1) body.files = await Promise.all(chosen.map(named_file));
    else if (chosen.length) Object.assign(body, await named_file(chosen[0]));
    else body.text = text.value;
    const headers = { "content-type": "application/json" };
    if ($("token")) headers.authorization = `Bearer ${$("token").value}`;
    return fetch(route, { method: "POST", headers, body: JSON.stringify(body), signal });
  }

  // The document is read while the question is typed; another document ends that. Errors are shown with the answer.
  function prepare() {
    clearTimeout(pause);
    preparing?.abort();
    preparing = null;
    if ((!chosen.length && !text.value.trim()) || $("token")?.value === "") return;
    const own = (preparing = new AbortController());
    const say = (message) => own === preparing && !reading && (state.textContent = message);
    say("The document is being read");
    own.done = send("v1/prepare", {}, own.signal).then((answer) => say(answer.ok ? "Ready" : ""), () => say(""));
  }

  async function ask(signal) {
    signal.addEventListener("abort", () => preparing?.abort());
    await preparing?.done;
    signal.throwIfAborted();
    const answer = await send("v1/page", { query: query.value }, signal);
    if (!answer.ok) throw new Error((await answer.json()).message);
    for await (const line of lines(answer.body)) {
      if (line.progress) tell(line.progress);
      if (line.error) throw new Error(line.error.message);
      if (line.page !== undefined) return show(line.page);
    }
    throw new Error("the server closed the connection; ask again");
  }

  function busy(yes) {
    go.disabled = yes;
    shown.setAttribute("aria-busy", yes);
    stop.hidden = !yes;
    if (!yes) progress.hidden = true;
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    complain("");
    if (reading) return;
    if (!query.value.trim()) return complain("The question is empty.");
    if (!chosen.length && !text.value.trim()) {
      source.open = true;
      return complain("There is no document yet: paste a text, choose files, or try the example.");
    }
    clearTimeout(pause);
    reading = new AbortController();
    const started = performance.now();
    busy(true);
    tell({ tokens: 0, of: 0 });
    try {
      await ask(reading.signal);
      state.textContent = `Read in ${((performance.now() - started) / 1000).toFixed(1)} s`;
    } catch (error) {
      forget();
      state.textContent = "";
      if (error.name === "AbortError") state.textContent = "Stopped";
      else complain(error instanceof TypeError ? "The server cannot be reached; is it still running?" : error.message);
    } finally {
      reading = null;
      busy(false);
    }
    return undefined;
  });

  stop.addEventListener("click", () => reading?.abort());
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") reading?.abort();
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target === text) form.requestSubmit();
  });
  text.addEventListener("input", () => {
    name_source();
    forget();
    preparing?.abort();
    clearTimeout(pause);
    pause = setTimeout(prepare, 700);
  });
  file.addEventListener("change", () => choose([...file.files]));
  $("clear").addEventListener("click", () => {
    text.value = file.value = "";
    choose([]);
    text.focus();
  });

  $("example").addEventListener("click", () => {
    const example = $("example-text");
    file.value = "";
    chosen = [];
    text.value = example.content.textContent.trim();
    query.value = example.dataset.question;
    name_source();
    form.requestSubmit();
  });

  const dragged = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  addEventListener("dragover", (event) => {
    if (!dragged(event)) return;
    event.preventDefault();
    source.open = true;
    form.classList.add("dropping");
  });
  addEventListener("dragleave", (event) => event.relatedTarget ?? form.classList.remove("dropping"));
  addEventListener("drop", (event) => {
    form.classList.remove("dropping");
    if (!dragged(event)) return;
    event.preventDefault();
    choose([...event.dataTransfer.files]);
  });
  name_source();
})();
