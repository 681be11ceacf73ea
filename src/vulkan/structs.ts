/**
 * The Vulkan structs that zinc uses, with the names and order of the specification. Sizes and
 * offsets follow from these declarations and are compared with the C compiler's in
 * `test/vulkan/structs.test.ts`.
 */
import { StructureType } from "./constants.ts";
import {
  array, bool32, bytes, chars, countOf, cstring, f32, handle, header, i32, list, pointer, ref, size64,
  struct, u32, u8,
} from "./layout.ts";

// --- Instance and devices ---

export const VkApplicationInfo = struct("VkApplicationInfo", {
  ...header(StructureType.APPLICATION_INFO), pApplicationName: cstring, applicationVersion: u32,
  pEngineName: cstring, engineVersion: u32, apiVersion: u32,
});

export const VkInstanceCreateInfo = struct("VkInstanceCreateInfo", {
  ...header(StructureType.INSTANCE_CREATE_INFO), flags: u32,
  pApplicationInfo: ref(VkApplicationInfo), enabledLayerCount: countOf("ppEnabledLayerNames"),
  ppEnabledLayerNames: list(cstring), enabledExtensionCount: countOf("ppEnabledExtensionNames"),
  ppEnabledExtensionNames: list(cstring),
});

export const VkLayerProperties = struct("VkLayerProperties", {
  layerName: chars(256), specVersion: u32, implementationVersion: u32, description: chars(256),
});

export const VkExtensionProperties = struct("VkExtensionProperties", {
  extensionName: chars(256), specVersion: u32,
});

export const VkExtent3D = struct("VkExtent3D", {
  width: u32, height: u32, depth: u32,
});

export const VkQueueFamilyProperties = struct("VkQueueFamilyProperties", {
  queueFlags: u32, queueCount: u32, timestampValidBits: u32,
  minImageTransferGranularity: VkExtent3D,
});

export const VkDeviceQueueCreateInfo = struct("VkDeviceQueueCreateInfo", {
  ...header(StructureType.DEVICE_QUEUE_CREATE_INFO), flags: u32, queueFamilyIndex: u32,
  queueCount: countOf("pQueuePriorities"), pQueuePriorities: list(f32),
});

export const VkDeviceCreateInfo = struct("VkDeviceCreateInfo", {
  ...header(StructureType.DEVICE_CREATE_INFO), flags: u32,
  queueCreateInfoCount: countOf("pQueueCreateInfos"),
  pQueueCreateInfos: list(VkDeviceQueueCreateInfo),
  enabledLayerCount: countOf("ppEnabledLayerNames"), ppEnabledLayerNames: list(cstring),
  enabledExtensionCount: countOf("ppEnabledExtensionNames"),
  ppEnabledExtensionNames: list(cstring), pEnabledFeatures: pointer,
});

// --- Properties ---

export const VkPhysicalDeviceLimits = struct("VkPhysicalDeviceLimits", {
  maxImageDimension1D: u32, maxImageDimension2D: u32, maxImageDimension3D: u32,
  maxImageDimensionCube: u32, maxImageArrayLayers: u32, maxTexelBufferElements: u32,
  maxUniformBufferRange: u32, maxStorageBufferRange: u32, maxPushConstantsSize: u32,
  maxMemoryAllocationCount: u32, maxSamplerAllocationCount: u32, bufferImageGranularity: size64,
  sparseAddressSpaceSize: size64, maxBoundDescriptorSets: u32,
  maxPerStageDescriptorSamplers: u32, maxPerStageDescriptorUniformBuffers: u32,
  maxPerStageDescriptorStorageBuffers: u32, maxPerStageDescriptorSampledImages: u32,
  maxPerStageDescriptorStorageImages: u32, maxPerStageDescriptorInputAttachments: u32,
  maxPerStageResources: u32, maxDescriptorSetSamplers: u32, maxDescriptorSetUniformBuffers: u32,
  maxDescriptorSetUniformBuffersDynamic: u32, maxDescriptorSetStorageBuffers: u32,
  maxDescriptorSetStorageBuffersDynamic: u32, maxDescriptorSetSampledImages: u32,
  maxDescriptorSetStorageImages: u32, maxDescriptorSetInputAttachments: u32,
  maxVertexInputAttributes: u32, maxVertexInputBindings: u32,
  maxVertexInputAttributeOffset: u32, maxVertexInputBindingStride: u32,
  maxVertexOutputComponents: u32, maxTessellationGenerationLevel: u32,
  maxTessellationPatchSize: u32, maxTessellationControlPerVertexInputComponents: u32,
  maxTessellationControlPerVertexOutputComponents: u32,
  maxTessellationControlPerPatchOutputComponents: u32,
  maxTessellationControlTotalOutputComponents: u32,
  maxTessellationEvaluationInputComponents: u32, maxTessellationEvaluationOutputComponents: u32,
  maxGeometryShaderInvocations: u32, maxGeometryInputComponents: u32,
  maxGeometryOutputComponents: u32, maxGeometryOutputVertices: u32,
  maxGeometryTotalOutputComponents: u32, maxFragmentInputComponents: u32,
  maxFragmentOutputAttachments: u32, maxFragmentDualSrcAttachments: u32,
  maxFragmentCombinedOutputResources: u32, maxComputeSharedMemorySize: u32,
  maxComputeWorkGroupCount: array(u32, 3), maxComputeWorkGroupInvocations: u32,
  maxComputeWorkGroupSize: array(u32, 3), subPixelPrecisionBits: u32,
  subTexelPrecisionBits: u32, mipmapPrecisionBits: u32, maxDrawIndexedIndexValue: u32,
  maxDrawIndirectCount: u32, maxSamplerLodBias: f32, maxSamplerAnisotropy: f32,
  maxViewports: u32, maxViewportDimensions: array(u32, 2), viewportBoundsRange: array(f32, 2),
  viewportSubPixelBits: u32, minMemoryMapAlignment: size64,
  minTexelBufferOffsetAlignment: size64, minUniformBufferOffsetAlignment: size64,
  minStorageBufferOffsetAlignment: size64, minTexelOffset: i32, maxTexelOffset: u32,
  minTexelGatherOffset: i32, maxTexelGatherOffset: u32, minInterpolationOffset: f32,
  maxInterpolationOffset: f32, subPixelInterpolationOffsetBits: u32, maxFramebufferWidth: u32,
  maxFramebufferHeight: u32, maxFramebufferLayers: u32, framebufferColorSampleCounts: u32,
  framebufferDepthSampleCounts: u32, framebufferStencilSampleCounts: u32,
  framebufferNoAttachmentsSampleCounts: u32, maxColorAttachments: u32,
  sampledImageColorSampleCounts: u32, sampledImageIntegerSampleCounts: u32,
  sampledImageDepthSampleCounts: u32, sampledImageStencilSampleCounts: u32,
  storageImageSampleCounts: u32, maxSampleMaskWords: u32, timestampComputeAndGraphics: bool32,
  timestampPeriod: f32, maxClipDistances: u32, maxCullDistances: u32,
  maxCombinedClipAndCullDistances: u32, discreteQueuePriorities: u32,
  pointSizeRange: array(f32, 2), lineWidthRange: array(f32, 2), pointSizeGranularity: f32,
  lineWidthGranularity: f32, strictLines: bool32, standardSampleLocations: bool32,
  optimalBufferCopyOffsetAlignment: size64, optimalBufferCopyRowPitchAlignment: size64,
  nonCoherentAtomSize: size64,
});

export const VkPhysicalDeviceSparseProperties = struct("VkPhysicalDeviceSparseProperties", {
  residencyStandard2DBlockShape: bool32, residencyStandard2DMultisampleBlockShape: bool32,
  residencyStandard3DBlockShape: bool32, residencyAlignedMipSize: bool32,
  residencyNonResidentStrict: bool32,
});

export const VkPhysicalDeviceProperties = struct("VkPhysicalDeviceProperties", {
  apiVersion: u32, driverVersion: u32, vendorID: u32, deviceID: u32, deviceType: u32,
  deviceName: chars(256), pipelineCacheUUID: bytes(16), limits: VkPhysicalDeviceLimits,
  sparseProperties: VkPhysicalDeviceSparseProperties,
});

export const VkPhysicalDeviceProperties2 = struct("VkPhysicalDeviceProperties2", {
  ...header(StructureType.PHYSICAL_DEVICE_PROPERTIES_2), properties: VkPhysicalDeviceProperties,
});

export const VkPhysicalDeviceVulkan11Properties = struct("VkPhysicalDeviceVulkan11Properties", {
  ...header(StructureType.PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES), deviceUUID: bytes(16),
  driverUUID: bytes(16), deviceLUID: bytes(8), deviceNodeMask: u32, deviceLUIDValid: bool32,
  subgroupSize: u32, subgroupSupportedStages: u32, subgroupSupportedOperations: u32,
  subgroupQuadOperationsInAllStages: bool32, pointClippingBehavior: u32,
  maxMultiviewViewCount: u32, maxMultiviewInstanceIndex: u32, protectedNoFault: bool32,
  maxPerSetDescriptors: u32, maxMemoryAllocationSize: size64,
});

export const VkConformanceVersion = struct("VkConformanceVersion", {
  major: u8, minor: u8, subminor: u8, patch: u8,
});

export const VkPhysicalDeviceVulkan12Properties = struct("VkPhysicalDeviceVulkan12Properties", {
  ...header(StructureType.PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES), driverID: u32,
  driverName: chars(256), driverInfo: chars(256), conformanceVersion: VkConformanceVersion,
  denormBehaviorIndependence: u32, roundingModeIndependence: u32,
  shaderSignedZeroInfNanPreserveFloat16: bool32, shaderSignedZeroInfNanPreserveFloat32: bool32,
  shaderSignedZeroInfNanPreserveFloat64: bool32, shaderDenormPreserveFloat16: bool32,
  shaderDenormPreserveFloat32: bool32, shaderDenormPreserveFloat64: bool32,
  shaderDenormFlushToZeroFloat16: bool32, shaderDenormFlushToZeroFloat32: bool32,
  shaderDenormFlushToZeroFloat64: bool32, shaderRoundingModeRTEFloat16: bool32,
  shaderRoundingModeRTEFloat32: bool32, shaderRoundingModeRTEFloat64: bool32,
  shaderRoundingModeRTZFloat16: bool32, shaderRoundingModeRTZFloat32: bool32,
  shaderRoundingModeRTZFloat64: bool32, maxUpdateAfterBindDescriptorsInAllPools: u32,
  shaderUniformBufferArrayNonUniformIndexingNative: bool32,
  shaderSampledImageArrayNonUniformIndexingNative: bool32,
  shaderStorageBufferArrayNonUniformIndexingNative: bool32,
  shaderStorageImageArrayNonUniformIndexingNative: bool32,
  shaderInputAttachmentArrayNonUniformIndexingNative: bool32,
  robustBufferAccessUpdateAfterBind: bool32, quadDivergentImplicitLod: bool32,
  maxPerStageDescriptorUpdateAfterBindSamplers: u32,
  maxPerStageDescriptorUpdateAfterBindUniformBuffers: u32,
  maxPerStageDescriptorUpdateAfterBindStorageBuffers: u32,
  maxPerStageDescriptorUpdateAfterBindSampledImages: u32,
  maxPerStageDescriptorUpdateAfterBindStorageImages: u32,
  maxPerStageDescriptorUpdateAfterBindInputAttachments: u32,
  maxPerStageUpdateAfterBindResources: u32, maxDescriptorSetUpdateAfterBindSamplers: u32,
  maxDescriptorSetUpdateAfterBindUniformBuffers: u32,
  maxDescriptorSetUpdateAfterBindUniformBuffersDynamic: u32,
  maxDescriptorSetUpdateAfterBindStorageBuffers: u32,
  maxDescriptorSetUpdateAfterBindStorageBuffersDynamic: u32,
  maxDescriptorSetUpdateAfterBindSampledImages: u32,
  maxDescriptorSetUpdateAfterBindStorageImages: u32,
  maxDescriptorSetUpdateAfterBindInputAttachments: u32, supportedDepthResolveModes: u32,
  supportedStencilResolveModes: u32, independentResolveNone: bool32, independentResolve: bool32,
  filterMinmaxSingleComponentFormats: bool32, filterMinmaxImageComponentMapping: bool32,
  maxTimelineSemaphoreValueDifference: size64, framebufferIntegerColorSampleCounts: u32,
});

export const VkPhysicalDeviceSubgroupSizeControlProperties = struct("VkPhysicalDeviceSubgroupSizeControlProperties", {
  ...header(StructureType.PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES),
  minSubgroupSize: u32, maxSubgroupSize: u32, maxComputeWorkgroupSubgroups: u32,
  requiredSubgroupSizeStages: u32,
});

export const VkPhysicalDeviceShaderIntegerDotProductProperties = struct("VkPhysicalDeviceShaderIntegerDotProductProperties", {
  ...header(StructureType.PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES),
  integerDotProduct8BitUnsignedAccelerated: bool32,
  integerDotProduct8BitSignedAccelerated: bool32,
  integerDotProduct8BitMixedSignednessAccelerated: bool32,
  integerDotProduct4x8BitPackedUnsignedAccelerated: bool32,
  integerDotProduct4x8BitPackedSignedAccelerated: bool32,
  integerDotProduct4x8BitPackedMixedSignednessAccelerated: bool32,
  integerDotProduct16BitUnsignedAccelerated: bool32,
  integerDotProduct16BitSignedAccelerated: bool32,
  integerDotProduct16BitMixedSignednessAccelerated: bool32,
  integerDotProduct32BitUnsignedAccelerated: bool32,
  integerDotProduct32BitSignedAccelerated: bool32,
  integerDotProduct32BitMixedSignednessAccelerated: bool32,
  integerDotProduct64BitUnsignedAccelerated: bool32,
  integerDotProduct64BitSignedAccelerated: bool32,
  integerDotProduct64BitMixedSignednessAccelerated: bool32,
  integerDotProductAccumulatingSaturating8BitUnsignedAccelerated: bool32,
  integerDotProductAccumulatingSaturating8BitSignedAccelerated: bool32,
  integerDotProductAccumulatingSaturating8BitMixedSignednessAccelerated: bool32,
  integerDotProductAccumulatingSaturating4x8BitPackedUnsignedAccelerated: bool32,
  integerDotProductAccumulatingSaturating4x8BitPackedSignedAccelerated: bool32,
  integerDotProductAccumulatingSaturating4x8BitPackedMixedSignednessAccelerated: bool32,
  integerDotProductAccumulatingSaturating16BitUnsignedAccelerated: bool32,
  integerDotProductAccumulatingSaturating16BitSignedAccelerated: bool32,
  integerDotProductAccumulatingSaturating16BitMixedSignednessAccelerated: bool32,
  integerDotProductAccumulatingSaturating32BitUnsignedAccelerated: bool32,
  integerDotProductAccumulatingSaturating32BitSignedAccelerated: bool32,
  integerDotProductAccumulatingSaturating32BitMixedSignednessAccelerated: bool32,
  integerDotProductAccumulatingSaturating64BitUnsignedAccelerated: bool32,
  integerDotProductAccumulatingSaturating64BitSignedAccelerated: bool32,
  integerDotProductAccumulatingSaturating64BitMixedSignednessAccelerated: bool32,
});

export const VkPhysicalDevicePCIBusInfoPropertiesEXT = struct("VkPhysicalDevicePCIBusInfoPropertiesEXT", {
  ...header(StructureType.PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT), pciDomain: u32,
  pciBus: u32, pciDevice: u32, pciFunction: u32,
});

// --- Features ---

export const VkPhysicalDeviceFeatures = struct("VkPhysicalDeviceFeatures", {
  robustBufferAccess: bool32, fullDrawIndexUint32: bool32, imageCubeArray: bool32,
  independentBlend: bool32, geometryShader: bool32, tessellationShader: bool32,
  sampleRateShading: bool32, dualSrcBlend: bool32, logicOp: bool32, multiDrawIndirect: bool32,
  drawIndirectFirstInstance: bool32, depthClamp: bool32, depthBiasClamp: bool32,
  fillModeNonSolid: bool32, depthBounds: bool32, wideLines: bool32, largePoints: bool32,
  alphaToOne: bool32, multiViewport: bool32, samplerAnisotropy: bool32,
  textureCompressionETC2: bool32, textureCompressionASTC_LDR: bool32,
  textureCompressionBC: bool32, occlusionQueryPrecise: bool32, pipelineStatisticsQuery: bool32,
  vertexPipelineStoresAndAtomics: bool32, fragmentStoresAndAtomics: bool32,
  shaderTessellationAndGeometryPointSize: bool32, shaderImageGatherExtended: bool32,
  shaderStorageImageExtendedFormats: bool32, shaderStorageImageMultisample: bool32,
  shaderStorageImageReadWithoutFormat: bool32, shaderStorageImageWriteWithoutFormat: bool32,
  shaderUniformBufferArrayDynamicIndexing: bool32,
  shaderSampledImageArrayDynamicIndexing: bool32,
  shaderStorageBufferArrayDynamicIndexing: bool32,
  shaderStorageImageArrayDynamicIndexing: bool32, shaderClipDistance: bool32,
  shaderCullDistance: bool32, shaderFloat64: bool32, shaderInt64: bool32, shaderInt16: bool32,
  shaderResourceResidency: bool32, shaderResourceMinLod: bool32, sparseBinding: bool32,
  sparseResidencyBuffer: bool32, sparseResidencyImage2D: bool32, sparseResidencyImage3D: bool32,
  sparseResidency2Samples: bool32, sparseResidency4Samples: bool32,
  sparseResidency8Samples: bool32, sparseResidency16Samples: bool32,
  sparseResidencyAliased: bool32, variableMultisampleRate: bool32, inheritedQueries: bool32,
});

export const VkPhysicalDeviceFeatures2 = struct("VkPhysicalDeviceFeatures2", {
  ...header(StructureType.PHYSICAL_DEVICE_FEATURES_2), features: VkPhysicalDeviceFeatures,
});

export const VkPhysicalDeviceVulkan11Features = struct("VkPhysicalDeviceVulkan11Features", {
  ...header(StructureType.PHYSICAL_DEVICE_VULKAN_1_1_FEATURES),
  storageBuffer16BitAccess: bool32, uniformAndStorageBuffer16BitAccess: bool32,
  storagePushConstant16: bool32, storageInputOutput16: bool32, multiview: bool32,
  multiviewGeometryShader: bool32, multiviewTessellationShader: bool32,
  variablePointersStorageBuffer: bool32, variablePointers: bool32, protectedMemory: bool32,
  samplerYcbcrConversion: bool32, shaderDrawParameters: bool32,
});

export const VkPhysicalDeviceVulkan12Features = struct("VkPhysicalDeviceVulkan12Features", {
  ...header(StructureType.PHYSICAL_DEVICE_VULKAN_1_2_FEATURES),
  samplerMirrorClampToEdge: bool32, drawIndirectCount: bool32, storageBuffer8BitAccess: bool32,
  uniformAndStorageBuffer8BitAccess: bool32, storagePushConstant8: bool32,
  shaderBufferInt64Atomics: bool32, shaderSharedInt64Atomics: bool32, shaderFloat16: bool32,
  shaderInt8: bool32, descriptorIndexing: bool32,
  shaderInputAttachmentArrayDynamicIndexing: bool32,
  shaderUniformTexelBufferArrayDynamicIndexing: bool32,
  shaderStorageTexelBufferArrayDynamicIndexing: bool32,
  shaderUniformBufferArrayNonUniformIndexing: bool32,
  shaderSampledImageArrayNonUniformIndexing: bool32,
  shaderStorageBufferArrayNonUniformIndexing: bool32,
  shaderStorageImageArrayNonUniformIndexing: bool32,
  shaderInputAttachmentArrayNonUniformIndexing: bool32,
  shaderUniformTexelBufferArrayNonUniformIndexing: bool32,
  shaderStorageTexelBufferArrayNonUniformIndexing: bool32,
  descriptorBindingUniformBufferUpdateAfterBind: bool32,
  descriptorBindingSampledImageUpdateAfterBind: bool32,
  descriptorBindingStorageImageUpdateAfterBind: bool32,
  descriptorBindingStorageBufferUpdateAfterBind: bool32,
  descriptorBindingUniformTexelBufferUpdateAfterBind: bool32,
  descriptorBindingStorageTexelBufferUpdateAfterBind: bool32,
  descriptorBindingUpdateUnusedWhilePending: bool32, descriptorBindingPartiallyBound: bool32,
  descriptorBindingVariableDescriptorCount: bool32, runtimeDescriptorArray: bool32,
  samplerFilterMinmax: bool32, scalarBlockLayout: bool32, imagelessFramebuffer: bool32,
  uniformBufferStandardLayout: bool32, shaderSubgroupExtendedTypes: bool32,
  separateDepthStencilLayouts: bool32, hostQueryReset: bool32, timelineSemaphore: bool32,
  bufferDeviceAddress: bool32, bufferDeviceAddressCaptureReplay: bool32,
  bufferDeviceAddressMultiDevice: bool32, vulkanMemoryModel: bool32,
  vulkanMemoryModelDeviceScope: bool32, vulkanMemoryModelAvailabilityVisibilityChains: bool32,
  shaderOutputViewportIndex: bool32, shaderOutputLayer: bool32,
  subgroupBroadcastDynamicId: bool32,
});

export const VkPhysicalDeviceSubgroupSizeControlFeatures = struct("VkPhysicalDeviceSubgroupSizeControlFeatures", {
  ...header(StructureType.PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES),
  subgroupSizeControl: bool32, computeFullSubgroups: bool32,
});

export const VkPhysicalDeviceShaderIntegerDotProductFeatures = struct("VkPhysicalDeviceShaderIntegerDotProductFeatures", {
  ...header(StructureType.PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES),
  shaderIntegerDotProduct: bool32,
});

export const VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR = struct("VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR", {
  ...header(StructureType.PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR),
  pipelineExecutableInfo: bool32,
});

// --- Memory ---

export const VkMemoryType = struct("VkMemoryType", {
  propertyFlags: u32, heapIndex: u32,
});

export const VkMemoryHeap = struct("VkMemoryHeap", {
  size: size64, flags: u32,
});

export const VkPhysicalDeviceMemoryProperties = struct("VkPhysicalDeviceMemoryProperties", {
  memoryTypeCount: u32, memoryTypes: array(VkMemoryType, 32), memoryHeapCount: u32,
  memoryHeaps: array(VkMemoryHeap, 16),
});

export const VkPhysicalDeviceMemoryProperties2 = struct("VkPhysicalDeviceMemoryProperties2", {
  ...header(StructureType.PHYSICAL_DEVICE_MEMORY_PROPERTIES_2),
  memoryProperties: VkPhysicalDeviceMemoryProperties,
});

export const VkPhysicalDeviceMemoryBudgetPropertiesEXT = struct("VkPhysicalDeviceMemoryBudgetPropertiesEXT", {
  ...header(StructureType.PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT),
  heapBudget: array(size64, 16), heapUsage: array(size64, 16),
});

export const VkBufferCreateInfo = struct("VkBufferCreateInfo", {
  ...header(StructureType.BUFFER_CREATE_INFO), flags: u32, size: size64, usage: u32,
  sharingMode: u32, queueFamilyIndexCount: u32, pQueueFamilyIndices: pointer,
});

export const VkMemoryRequirements = struct("VkMemoryRequirements", {
  size: size64, alignment: size64, memoryTypeBits: u32,
});

export const VkMemoryAllocateFlagsInfo = struct("VkMemoryAllocateFlagsInfo", {
  ...header(StructureType.MEMORY_ALLOCATE_FLAGS_INFO), flags: u32, deviceMask: u32,
});

export const VkMemoryAllocateInfo = struct("VkMemoryAllocateInfo", {
  ...header(StructureType.MEMORY_ALLOCATE_INFO), allocationSize: size64, memoryTypeIndex: u32,
});

export const VkMappedMemoryRange = struct("VkMappedMemoryRange", {
  ...header(StructureType.MAPPED_MEMORY_RANGE), memory: handle, offset: size64, size: size64,
});

export const VkBufferDeviceAddressInfo = struct("VkBufferDeviceAddressInfo", {
  ...header(StructureType.BUFFER_DEVICE_ADDRESS_INFO), buffer: handle,
});

// --- Pipelines ---

export const VkShaderModuleCreateInfo = struct("VkShaderModuleCreateInfo", {
  ...header(StructureType.SHADER_MODULE_CREATE_INFO), flags: u32, codeSize: size64,
  pCode: pointer,
});

export const VkPushConstantRange = struct("VkPushConstantRange", {
  stageFlags: u32, offset: u32, size: u32,
});

export const VkPipelineLayoutCreateInfo = struct("VkPipelineLayoutCreateInfo", {
  ...header(StructureType.PIPELINE_LAYOUT_CREATE_INFO), flags: u32, setLayoutCount: u32,
  pSetLayouts: pointer, pushConstantRangeCount: countOf("pPushConstantRanges"),
  pPushConstantRanges: list(VkPushConstantRange),
});

export const VkSpecializationMapEntry = struct("VkSpecializationMapEntry", {
  constantID: u32, offset: u32, size: size64,
});

export const VkSpecializationInfo = struct("VkSpecializationInfo", {
  mapEntryCount: countOf("pMapEntries"), pMapEntries: list(VkSpecializationMapEntry),
  dataSize: size64, pData: pointer,
});

export const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo = struct("VkPipelineShaderStageRequiredSubgroupSizeCreateInfo", {
  ...header(StructureType.PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO),
  requiredSubgroupSize: u32,
});

export const VkPipelineShaderStageCreateInfo = struct("VkPipelineShaderStageCreateInfo", {
  ...header(StructureType.PIPELINE_SHADER_STAGE_CREATE_INFO), flags: u32, stage: u32,
  module: handle, pName: cstring, pSpecializationInfo: ref(VkSpecializationInfo),
});

export const VkComputePipelineCreateInfo = struct("VkComputePipelineCreateInfo", {
  ...header(StructureType.COMPUTE_PIPELINE_CREATE_INFO), flags: u32,
  stage: VkPipelineShaderStageCreateInfo, layout: handle, basePipelineHandle: handle,
  basePipelineIndex: i32,
});

export const VkPipelineCacheCreateInfo = struct("VkPipelineCacheCreateInfo", {
  ...header(StructureType.PIPELINE_CACHE_CREATE_INFO), flags: u32, initialDataSize: size64,
  pInitialData: pointer,
});

export const VkPipelineInfoKHR = struct("VkPipelineInfoKHR", {
  ...header(StructureType.PIPELINE_INFO_KHR), pipeline: handle,
});

export const VkPipelineExecutablePropertiesKHR = struct("VkPipelineExecutablePropertiesKHR", {
  ...header(StructureType.PIPELINE_EXECUTABLE_PROPERTIES_KHR), stages: u32, name: chars(256),
  description: chars(256), subgroupSize: u32,
});

export const VkPipelineExecutableInfoKHR = struct("VkPipelineExecutableInfoKHR", {
  ...header(StructureType.PIPELINE_EXECUTABLE_INFO_KHR), pipeline: handle, executableIndex: u32,
});

/** `value` is a union of eight bytes, read here as its integer; `format` says what it is. */
export const VkPipelineExecutableStatisticKHR = struct("VkPipelineExecutableStatisticKHR", {
  ...header(StructureType.PIPELINE_EXECUTABLE_STATISTIC_KHR), name: chars(256),
  description: chars(256), format: u32, value: size64,
});

// --- Commands and synchronization ---

export const VkCommandPoolCreateInfo = struct("VkCommandPoolCreateInfo", {
  ...header(StructureType.COMMAND_POOL_CREATE_INFO), flags: u32, queueFamilyIndex: u32,
});

export const VkCommandBufferAllocateInfo = struct("VkCommandBufferAllocateInfo", {
  ...header(StructureType.COMMAND_BUFFER_ALLOCATE_INFO), commandPool: handle, level: u32,
  commandBufferCount: u32,
});

export const VkCommandBufferBeginInfo = struct("VkCommandBufferBeginInfo", {
  ...header(StructureType.COMMAND_BUFFER_BEGIN_INFO), flags: u32, pInheritanceInfo: pointer,
});

export const VkMemoryBarrier = struct("VkMemoryBarrier", {
  ...header(StructureType.MEMORY_BARRIER), srcAccessMask: u32, dstAccessMask: u32,
});

export const VkBufferCopy = struct("VkBufferCopy", {
  srcOffset: size64, dstOffset: size64, size: size64,
});

export const VkQueryPoolCreateInfo = struct("VkQueryPoolCreateInfo", {
  ...header(StructureType.QUERY_POOL_CREATE_INFO), flags: u32, queryType: u32, queryCount: u32,
  pipelineStatistics: u32,
});

export const VkSemaphoreTypeCreateInfo = struct("VkSemaphoreTypeCreateInfo", {
  ...header(StructureType.SEMAPHORE_TYPE_CREATE_INFO), semaphoreType: u32, initialValue: handle,
});

export const VkSemaphoreCreateInfo = struct("VkSemaphoreCreateInfo", {
  ...header(StructureType.SEMAPHORE_CREATE_INFO), flags: u32,
});

export const VkTimelineSemaphoreSubmitInfo = struct("VkTimelineSemaphoreSubmitInfo", {
  ...header(StructureType.TIMELINE_SEMAPHORE_SUBMIT_INFO),
  waitSemaphoreValueCount: countOf("pWaitSemaphoreValues"), pWaitSemaphoreValues: list(handle),
  signalSemaphoreValueCount: countOf("pSignalSemaphoreValues"),
  pSignalSemaphoreValues: list(handle),
});

export const VkSubmitInfo = struct("VkSubmitInfo", {
  ...header(StructureType.SUBMIT_INFO), waitSemaphoreCount: countOf("pWaitSemaphores"),
  pWaitSemaphores: list(handle), pWaitDstStageMask: list(u32),
  commandBufferCount: countOf("pCommandBuffers"), pCommandBuffers: list(pointer),
  signalSemaphoreCount: countOf("pSignalSemaphores"), pSignalSemaphores: list(handle),
});

export const VkSemaphoreWaitInfo = struct("VkSemaphoreWaitInfo", {
  ...header(StructureType.SEMAPHORE_WAIT_INFO), flags: u32,
  semaphoreCount: countOf("pSemaphores"), pSemaphores: list(handle), pValues: list(handle),
});

// --- VK_KHR_cooperative_matrix ---

export const VkPhysicalDeviceCooperativeMatrixFeaturesKHR = struct(
  "VkPhysicalDeviceCooperativeMatrixFeaturesKHR",
  {
    ...header(StructureType.PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR),
    cooperativeMatrix: bool32, cooperativeMatrixRobustBufferAccess: bool32,
  },
);

export const VkCooperativeMatrixPropertiesKHR = struct("VkCooperativeMatrixPropertiesKHR", {
  ...header(StructureType.COOPERATIVE_MATRIX_PROPERTIES_KHR), MSize: u32, NSize: u32, KSize: u32,
  AType: u32, BType: u32, CType: u32, ResultType: u32, saturatingAccumulation: bool32, scope: u32,
});
