// SPDX-License-Identifier: Apache-2.0
// The page: two views, the settings, and the key.
import { ask, getKey, setKey } from "./api.js";
import { Chat } from "./chat.js";
import { Dashboard } from "./dashboard.js";
import { $ } from "./dom.js";
import { Settings } from "./settings.js";

const settings = new Settings($("settings"), getKey(), takeKey, closeSettings);
const chat = new Chat(settings);
const dashboard = new Dashboard();

function takeKey(key) {
  setKey(key);
  loadModels();
}

function closeSettings() {
  showSettings(false);
  $("toggle").focus();
}

function showSettings(shown) {
  $("settings").hidden = !shown;
  $("toggle").setAttribute("aria-expanded", shown);
}

function askForKey() {
  location.hash = "#chat";
  showSettings(true);
  settings.askForKey();
}

async function loadModels() {
  try {
    const { data } = await (await ask("v1/models")).json();
    settings.setModels(data.map((model) => model.id));
  } catch (e) {
    if (e.status === 401) askForKey();
    else setTimeout(loadModels, 2000);
  }
}

function showView() {
  const view = location.hash === "#dashboard" ? "dashboard" : "chat";
  for (const name of ["chat", "dashboard"]) $(name).hidden = name !== view;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${view}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (view === "dashboard") dashboard.show();
}

chat.onKey = askForKey;
$("toggle").addEventListener("click", () => showSettings($("settings").hidden));
showSettings(matchMedia("(min-width: 60rem)").matches);
$("settings").addEventListener("keydown", (event) => {
  if (event.key === "Escape") closeSettings();
});
addEventListener("hashchange", showView);
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();  // the address's end names the view
  location.hash = "#chat";
  showView();
  $("message").focus();
});
showView();
loadModels();
