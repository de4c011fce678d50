// @ts-check
/** The signs that points are drawn with: kinds differ in shape and size as well as in color. */

/**
 * @typedef {"dot" | "ring" | "disc" | "square" | "cross" | "triangle"} Shape
 * @typedef {{shape: Shape, colour: string}} Kind
 */

/**
 * Each kind drawn once, to be copied to where its points are.
 * @param {Kind[]} kinds @param {number} radius device pixels @returns {HTMLCanvasElement[]}
 */
export function buildSprites(kinds, radius) {
  return kinds.map((kind) => {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = 2 * Math.ceil(radius + 2);
    drawDot(canvas, kind, radius);
    return canvas;
  });
}

/** One sign in the middle of a canvas. @param {HTMLCanvasElement} canvas @param {Kind} kind @param {number} radius */
export function drawDot(canvas, kind, radius) {
  const context = canvas.getContext("2d");
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.translate(canvas.width / 2, canvas.height / 2);
  context.fillStyle = context.strokeStyle = kind.colour;
  context.beginPath();
  SHAPE_DRAWERS[kind.shape](context, radius);
  context.setTransform(1, 0, 0, 1, 0, 0);
}

/** @type {Record<Shape, (context: CanvasRenderingContext2D, radius: number) => void>} */
const SHAPE_DRAWERS = {
  dot: (context, radius) => {
    context.arc(0, 0, 0.62 * radius, 0, 2 * Math.PI);
    context.fill();
  },
  ring: (context, radius) => {
    context.lineWidth = Math.max(0.32 * radius, 1);
    context.arc(0, 0, 0.78 * radius, 0, 2 * Math.PI);
    context.stroke();
  },
  disc: (context, radius) => {
    context.arc(0, 0, radius, 0, 2 * Math.PI);
    context.fill();
  },
  square: (context, radius) => context.fillRect(-0.95 * radius, -0.95 * radius, 1.9 * radius, 1.9 * radius),
  cross: (context, radius) => {
    context.lineWidth = Math.max(0.5 * radius, 1.2);
    context.moveTo(-0.85 * radius, -0.85 * radius);
    context.lineTo(0.85 * radius, 0.85 * radius);
    context.moveTo(0.85 * radius, -0.85 * radius);
    context.lineTo(-0.85 * radius, 0.85 * radius);
    context.stroke();
  },
  triangle: (context, radius) => {
    context.moveTo(0, -1.15 * radius);
    context.lineTo(1.1 * radius, 0.85 * radius);
    context.lineTo(-1.1 * radius, 0.85 * radius);
    context.fill();
  },
};
