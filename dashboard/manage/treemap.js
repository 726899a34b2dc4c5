// Squares whose areas are as their sizes, as near to squares as they come. Pure.

/** `sizes` fall; gives {x, y, width, height} in percent for each. A box is `ratio` times as wide as it is high. */
export function squares(sizes, ratio = 2.4) {
  const whole = sizes.reduce((sum, size) => sum + size, 0) || 1;
  const boxes = [];
  let rest = { x: 0, y: 0, width: ratio, height: 1 };
  const scale = ratio / whole;
  let first = 0;
  while (first < sizes.length) {
    const side = Math.min(rest.width, rest.height);
    let [count, area, best] = [0, 0, Infinity];
    while (first + count < sizes.length) {
      const next = area + sizes[first + count] * scale;
      const worst = worstOf(sizes[first] * scale, sizes[first + count] * scale, next, side);
      if (worst > best) break;
      [count, area, best] = [count + 1, next, worst];
    }
    const isTall = rest.width >= rest.height;
    const depth = area / side;
    let at = 0;
    for (const size of sizes.slice(first, first + count)) {
      const length = (size * scale) / depth;
      boxes.push(isTall ? { x: rest.x, y: rest.y + at, width: depth, height: length } : { x: rest.x + at, y: rest.y, width: length, height: depth });
      at += length;
    }
    rest = isTall
      ? { x: rest.x + depth, y: rest.y, width: rest.width - depth, height: rest.height }
      : { x: rest.x, y: rest.y + depth, width: rest.width, height: rest.height - depth };
    first += count;
  }
  return boxes.map(({ x, y, width, height }) => ({ x: (x / ratio) * 100, y: y * 100, width: (width / ratio) * 100, height: height * 100 }));
}

/** The worst ratio of sides in a row. */
const worstOf = (largest, smallest, sum, side) => Math.max((side * side * largest) / (sum * sum), (sum * sum) / (side * side * smallest));
