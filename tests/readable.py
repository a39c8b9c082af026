"""Whether the words of a page in a browser can be read."""

from typing import Any

_FAINT = """() => {
  const numbers = (color) => {
    const found = color.match(/[\\d.]+/g).map(Number);
    const scale = color.startsWith("color(") ? 255 : 1; // what color-mix computes
    return [...found.slice(0, 3).map((value) => value * scale), found[3] ?? 1];
  };
  const over = (front, back) =>
    [0, 1, 2].map((n) => front[n] * front[3] + back[n] * (1 - front[3])).concat(1);
  const behind = (element) => {
    const layers = [];
    for (let one = element; one; one = one.parentElement)
      layers.unshift(numbers(getComputedStyle(one).backgroundColor));
    return layers.reduce((back, front) => over(front, back), [255, 255, 255, 1]);
  };
  const brightness = (color) => {
    const [red, green, blue] = color.slice(0, 3).map((value) => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const faint = new Set();
  const check = (element, color, words) => {
    const back = behind(element);
    const front = over(numbers(color), back);
    const [dark, light] = [brightness(front), brightness(back)].sort((a, b) => a - b);
    const contrast = (light + 0.05) / (dark + 0.05);
    const told = `${contrast.toFixed(2)}: ${words.trim().slice(0, 60)}`;
    if (contrast < 4.5) faint.add(told);
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const { data, parentElement } = texts.currentNode;
    if (!data.trim() || !parentElement.checkVisibility()) continue;
    const style = getComputedStyle(parentElement);
    const drawn = parentElement instanceof SVGElement;
    check(parentElement, drawn ? style.fill : style.color, data);
  }
  for (const field of document.querySelectorAll("[placeholder]"))
    check(field, getComputedStyle(field, "::placeholder").color, field.placeholder);
  return [...faint];
}"""


def faint_words(page: Any) -> list[str]:
    """Words with a contrast below 4.5 to what is behind them, each with its contrast.

    The words of empty fields are among them.
    """
    return list(page.evaluate(_FAINT))
