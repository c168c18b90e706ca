"""Calls of `keras.backend`, by the names of its functions: text that both sides evaluate."""

import numpy as np

RNG = np.random.default_rng(7)
X = RNG.normal(size=(2, 3)).astype("float32")
Y = RNG.normal(size=(2, 3)).astype("float32")
B = X > 0
P = RNG.uniform(0.1, 0.9, size=(2, 3)).astype("float32")
ONE = np.eye(3, dtype="float32")[[2, 0]]
SEQUENCE = RNG.normal(size=(2, 4, 3)).astype("float32")
IMAGES = RNG.normal(size=(2, 4, 4, 3)).astype("float32")
VOLUMES = RNG.normal(size=(1, 3, 3, 3, 2)).astype("float32")
K1, K2 = [RNG.normal(size=s).astype("float32") for s in ((2, 3, 2), (2, 2, 3, 2))]
K3, POINT = [
    RNG.normal(size=s).astype("float32") for s in ((2, 2, 2, 2, 1), (1, 1, 6, 2))
]
MASK = np.array([[1, 1, 0, 1], [0, 1, 1, 0]], bool)
PATHS = RNG.dirichlet(np.ones(4), size=(2, 5)).astype("float32")


def step(K):
    """A step of a network whose state adds up the inputs."""
    return lambda x, states: (K.tanh(x + states[0]), [states[0] + x])


def double(x):
    return x * 2


def horner(a, x):
    return a * x + 1


# Arrays are tensors of either side: "t(X)".
CALLS = """
K.abs(t(X)) K.cos(t(X)) K.exp(t(X)) K.log(t(P)) K.round(t(X)) K.sigmoid(t(X)) K.sign(t(X))
K.sin(t(X)) K.softplus(t(X)) K.softsign(t(X)) K.sqrt(t(X)) K.square(t(X)) K.tanh(t(X))
K.hard_sigmoid(t(X)) K.elu(t(X),alpha=0.5) K.relu(t(X),alpha=0.1,max_value=0.5,threshold=0.2)
K.relu(t(X),0.3) K.softmax(t(X)) K.softmax(t(IMAGES),axis=(1,2)) K.clip(t(X),-0.5,0.2)
K.clip(t(X),None,0.2) K.clip(t(X),0.3,-0.3) K.pow(t(P),2.0) K.maximum(t(X),t(Y))
K.minimum(t(X),t(Y)) K.equal(t(X),t(X)) K.not_equal(t(X),t(Y)) K.greater(t(X),t(Y))
K.greater_equal(t(X),t(Y)) K.less(t(X),t(Y)) K.less_equal(t(X),t(Y)) K.all(t(B))
K.any(t(X),axis=1) K.argmax(t(X)) K.argmin(t(X),axis=0) K.max(t(X),axis=1)
K.min(t(X),keepdims=True) K.mean(t(B),axis=0) K.mean(t(X),axis=-1,keepdims=True)
K.prod(t(X),1) K.std(t(X),axis=1) K.sum(t(X),axis=(0,1)) K.var(t(X),0) K.cumsum(t(X),axis=1)
K.cumprod(t(X)) K.l2_normalize(t(X),axis=1) K.moving_average_update(K.variable(X),t(Y),0.9)
K.arange(3) K.arange(1,7,2,dtype="float32") K.arange(-2) K.cast(t(B),"float32")
K.cast_to_floatx(np.arange(3)) K.concatenate([t(X),t(Y)]) K.constant([1,2])
K.constant(3,shape=(2,)) K.count_params(t(X)) K.dtype(t(X)) K.int_shape(t(X)) K.ndim(t(X))
K.eye(2) K.ones((2,)) K.zeros((2,0)) K.ones_like(t(X)) K.zeros_like(t(X),dtype="int32")
K.expand_dims(t(X)) K.flatten(t(X)) K.batch_flatten(t(IMAGES)) K.gather(t(X),[1,0])
K.one_hot(t(np.array([1,0])),3) K.permute_dimensions(t(SEQUENCE),(2,0,1)) K.transpose(t(X))
K.repeat(t(X),2) K.repeat_elements(t(X),2,axis=1) K.reshape(t(X),(3,2)) K.reverse(t(X),1)
K.reverse(t(X),(0,1)) K.shape(t(X)) K.squeeze(t(X[:,:1]),1) K.stack([t(X),t(Y)],axis=1)
K.tile(t(X),(1,2)) K.tile(t(X[0]),2) K.in_top_k(t(X),t(np.array([0,2])),2)
K.switch(t(B),t(X),t(Y)) K.switch(t(B[0]),t(X),t(Y))
K.switch(t(B),t(SEQUENCE[:,:3]),t(SEQUENCE[:,1:]))
K.switch(t(np.array(True)),lambda:t(X),lambda:t(Y)) K.dot(t(X),t(Y.T))
K.dot(t(SEQUENCE),t(X.T)) K.batch_dot(t(X),t(Y)) K.batch_dot(t(SEQUENCE),t(X),axes=(2,1))
K.batch_dot(t(X),t(SEQUENCE),axes=(1,2)) K.batch_dot(t(SEQUENCE),t(SEQUENCE),axes=1)
K.batch_dot(t(IMAGES),t(SEQUENCE),axes=(3,2)) K.map_fn(double,t(X)) K.foldl(horner,t(X))
K.foldr(horner,t(X)) K.update_add(K.variable(X),t(Y)) K.update_sub(K.variable(X),t(Y))
K.update(K.variable(X),t(Y)) K.get_value(K.variable([1,2])) K.eval(t(X)) K.stop_gradient(t(X))
K.is_sparse(t(X)) K.to_dense(t(X)) K.binary_crossentropy(t(ONE),t(P))
K.binary_crossentropy(t(ONE),t(X),from_logits=True) K.binary_crossentropy(t(ONE),t(1-ONE))
K.binary_focal_crossentropy(t(ONE),t(P),apply_class_balancing=True,alpha=0.3,gamma=1.5)
K.binary_focal_crossentropy(t(ONE),t(X),from_logits=True)
K.categorical_crossentropy(t(ONE),t(P))
K.categorical_crossentropy(t(ONE.T),t(X.T),from_logits=True,axis=0)
K.categorical_focal_crossentropy(t(ONE),t(P))
K.categorical_focal_crossentropy(t(ONE),t(X),0.4,1.0,True)
K.sparse_categorical_crossentropy(t(np.array([2,0])),t(P))
K.sparse_categorical_crossentropy(t(np.array([[2],[0]])),t(X),from_logits=True)
K.sparse_categorical_crossentropy(t(np.array([2,0])),t(X),from_logits=True,ignore_class=0)
K.bias_add(t(SEQUENCE),t(X[0])) K.bias_add(t(SEQUENCE),t(SEQUENCE[0]))
K.bias_add(t(IMAGES),t(IMAGES[0].transpose(1,2,0)),data_format="channels_first")
K.batch_normalization(t(X),t(Y[0]),t(P[0]),t(Y[1]),t(P[1]))
K.conv1d(t(SEQUENCE),t(K1),padding="causal",dilation_rate=2)
K.conv1d(t(SEQUENCE),t(K1),2,"same") K.conv2d(t(IMAGES),t(K2),(2,1),"same")
K.conv2d(t(IMAGES),t(K2),dilation_rate=(1,2))
K.conv2d_transpose(t(IMAGES),t(K2.transpose(0,1,3,2)),(2,8,8,2),(2,2),"same")
K.conv3d(t(VOLUMES),t(K3)) K.depthwise_conv2d(t(IMAGES),t(K2),padding="same")
K.separable_conv2d(t(IMAGES),t(K2),t(POINT)) K.pool2d(t(IMAGES),(2,2),(2,1))
K.pool2d(t(IMAGES),(3,3),padding="same",pool_mode="avg")
K.pool3d(t(VOLUMES),(2,2,2),pool_mode="avg") K.temporal_padding(t(SEQUENCE),(2,0))
K.spatial_2d_padding(t(IMAGES),((1,0),(0,2)))
K.spatial_2d_padding(t(IMAGES),data_format="channels_first") K.spatial_3d_padding(t(VOLUMES))
K.resize_images(t(IMAGES),2,3,"channels_last")
K.resize_images(t(IMAGES),2,1,"channels_first","bilinear")
K.resize_volumes(t(VOLUMES),2,1,3,"channels_last")
K.ctc_batch_cost(t(np.array([[0,1],[2,0]])),t(PATHS),t(np.array([[5],[4]])),t(np.array([[2],[1]])))
K.ctc_decode(t(PATHS),t(np.array([5,4])))
K.ctc_decode(t(PATHS),t(np.array([5,4])),False,100,2) K.rnn(step(K),t(SEQUENCE),[t(X)])
K.rnn(step(K),t(SEQUENCE),[t(X)],go_backwards=True,mask=t(MASK))
K.rnn(step(K),t(SEQUENCE),[t(X)],mask=t(MASK),zero_output_for_mask=True,return_all_outputs=False)
K.rnn(step(K),t(SEQUENCE),[t(X)],input_length=t(np.array([3,2],"int32")))
K.rnn(step(K),t(SEQUENCE.transpose(1,0,2)),[t(X)],time_major=True,unroll=True)
""".split()


def flat(result):
    """The arrays in a result."""
    if isinstance(result, (list, tuple)):
        return [array for each in result for array in flat(each)]
    return [np.asarray(result.numpy() if hasattr(result, "numpy") else result)]


def evaluate(call, K, tensor):
    """The arrays that a call gives on one side."""
    return flat(eval(call, globals() | {"K": K, "t": tensor}))
