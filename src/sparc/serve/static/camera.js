<p>camera.js</p>
